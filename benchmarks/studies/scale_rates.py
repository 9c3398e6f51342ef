"""Rates of the bill of docs/scale.md, CPU time of one thread: `python -m benchmarks.studies.scale_rates`."""

import io
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from deephash_pipeline import ImageHasher
from deephash_pipeline.images.decoding.decode import decode_image
from deephash_pipeline.networks import build_trunk
from deephash_pipeline.search.encoding import CodeBlock, CodeFolder
from deephash_pipeline.search.images import ImageIndex

SEED = 20261122
PHOTOS = 40
BLOCK = 1024
BLOCKS = 60


def main() -> None:
    """Print the rates."""
    torch.set_num_threads(1)
    draws = np.random.default_rng(SEED)
    coarse = Image.fromarray(draws.integers(0, 256, (60, 80, 3), dtype=np.uint8))
    file = io.BytesIO()
    coarse.resize((500, 375), Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
    for size in (32, 227):
        began = time.process_time()
        for _ in range(PHOTOS):
            decode_image(io.BytesIO(file.getvalue()), size, 3)
        seconds = time.process_time() - began
        kilobytes = len(file.getvalue()) // 1000
        print(f"JPEG of 500 x 375, {kilobytes} kB, to {size} pixels: {PHOTOS / seconds:.0f} a second")
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
