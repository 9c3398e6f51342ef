"""Rates of the bill of docs/scale.md, CPU time of one thread: `python -m benchmarks.studies.scale_rates`."""

import io
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from deephash_pipeline import ImageHasher
from deephash_pipeline.encoding import CodeBlock, CodeFolder
from deephash_pipeline.images.decoding.decode import decode_image
from deephash_pipeline.networks import build_trunk
from deephash_pipeline.photographs import ImageIndex

SEED = 20261122
PHOTOS = 40
BLOCK = 1024
BLOCKS = 60


def jpeg(draws: np.random.Generator, size: tuple[int, int], grain: float) -> bytes:
    """Smooth random colours, with the grain of a sensor: its standard deviation of 255."""
    coarse = Image.fromarray(draws.integers(0, 256, (60, 80, 3), dtype=np.uint8))
    pixels = np.asarray(coarse.resize(size, Image.Resampling.BICUBIC)) + grain * draws.standard_normal((*size[::-1], 1))
    file = io.BytesIO()
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(file, "JPEG", quality=90)
    return file.getvalue()


def main() -> None:
    """Print the rates."""
    torch.set_num_threads(1)
    draws = np.random.default_rng(SEED)
    for size, shape, grain in ((32, (500, 375), 0), (227, (500, 375), 0), (224, (4000, 3000), 6)):
        file = jpeg(draws, shape, grain)
        began = time.process_time()
        for _ in range(PHOTOS):
            decode_image(io.BytesIO(file), size, 3)
        seconds = time.process_time() - began
        name = " x ".join(map(str, shape))
        print(f"JPEG of {name}, {len(file) // 1000} kB, to {size} pixels: {PHOTOS / seconds:.0f} a second")
    trunk = build_trunk("caffenet", (3, 256, 256)).eval()
    images = torch.rand(32, 3, *trunk.image_size)
    with torch.inference_mode():
        trunk(images)
        began = time.process_time()
        trunk(images)
    print(f"caffenet: {len(images) / (time.process_time() - began):.0f} a second")
    hasher = ImageHasher.pretrained("cifar10-48", "cpu")
    with tempfile.TemporaryDirectory() as folder:
        index = ImageIndex.create(f"{folder}/index", hasher)
        began = time.process_time()
        for block in range(BLOCKS):
            names = [f"shard-{block:06d}.tar/{row:09d}.jpg" for row in range(BLOCK)]
            index.add_codes(names, draws.integers(0, 256, (BLOCK, 6), dtype=np.uint8))
        seconds = time.process_time() - began
        index.close()
        stored = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        CodeFolder(folder).write("0a" * 16, CodeBlock(names, np.zeros((BLOCK, 6), np.uint8), [None] * BLOCK, []))
        codes = next(Path(folder).glob("codes-*")).stat().st_size
    count = BLOCK * BLOCKS
    print(f"index: {count / seconds:.0f} images a second, {stored / count:.0f} bytes an image on disk")
    print(f"file of codes: {codes / BLOCK:.0f} bytes an image")


if __name__ == "__main__":
    main()
