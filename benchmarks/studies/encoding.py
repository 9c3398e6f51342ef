"""Encoding that is killed, and what it costs beside bare work: `python -m benchmarks.studies.encoding FOLDER`.

Makes PNG files of CIFAR's size, encodes them on two local Ray nodes while workers are killed with SIGKILL, and compares
every code with one machine's. `--s3` reads from and writes to moto's server on the loopback device instead. With
`--bare`, no Ray: CPU time of the files of codes beside that of decoding and forward pass alone, on one thread.
"""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import click
import numpy as np
import pandas as pd
import psutil
import torch
from PIL import Image

from benchmarks.processes import MEBIBYTE
from deephash_pipeline import ImageHasher
from deephash_pipeline.encoding import CodeFolder, EncodingWorkers, Source, encode_source
from deephash_pipeline.encoding.blocks import Work, encode_block
from deephash_pipeline.encoding.encode import IMAGES_PER_BLOCK
from deephash_pipeline.images.batches import image_batches
from tests.cluster.local_cluster import start_cluster

SEED = 20261122
HASHER = "cifar10-48"
FOLDER_OF = 1000
ROUNDS = 5


def make_pictures(folder: Path, count: int) -> None:
    """Write smooth random pictures of 32 x 32 pixels, a thousand in a folder."""
    draws = np.random.default_rng(SEED)
    for number in range(count):
        path = folder / f"{number // FOLDER_OF:05d}" / f"{number:08d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(draws.integers(0, 256, (8, 8, 3), dtype=np.uint8))
        coarse.resize((32, 32), Image.Resampling.BILINEAR).save(path, compress_level=1)


def busy_workers() -> list[psutil.Process]:
    """Ray's workers that have a block under way."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cmdline()[:1] == ["ray::encode_block"]:
                found.append(process)
    return found


class Killer(threading.Thread):
    """Kills busy workers, evenly over the files that are to be made, and watches the memory of the others."""

    def __init__(self, codes: CodeFolder, kills: int, blocks: int) -> None:
        super().__init__(daemon=True)
        self.codes, self.kills, self.blocks = codes, kills, blocks
        self.killed: list[int] = []
        self.ended = threading.Event()
        self.memory: list[tuple[float, int, int]] = []
        """Share of the files that are there, bytes of this process, bytes of the largest worker."""

    def run(self) -> None:
        """Kill until there were enough kills, and watch until all is done."""
        while not self.ended.wait(0.2):
            done, workers = len(self.codes.done()), busy_workers()
            with suppress(psutil.Error):
                largest = max((worker.memory_info().rss for worker in workers), default=0)
                self.memory.append((done / self.blocks, psutil.Process().memory_info().rss, largest))
            if len(self.killed) < self.kills and done * (self.kills + 1) >= len(self.killed) * self.blocks:
                for worker in workers[:1]:
                    worker.kill()
                    self.killed.append(worker.pid)

    def memory_by_quarters(self) -> str:
        """Give the most that this process and a worker had in each quarter of the files, MiB."""
        seen = pd.DataFrame(self.memory, columns=["done", "own", "worker"])
        most = seen.groupby((4 * seen["done"]).astype(int).clip(upper=3))[["own", "worker"]].max() / MEBIBYTE
        return ", ".join(f"{own:.0f} and {worker:.0f}" for own, worker in most.to_numpy())


def with_kills(source: str, codes: str, kills: int, expected: dict[str, list[int]], hasher: ImageHasher) -> None:
    """Encode on two nodes of one core while workers are killed, and compare."""
    cluster = start_cluster(nodes=2)
    killer = Killer(CodeFolder(codes), kills, -(-len(expected) // IMAGES_PER_BLOCK))
    killer.start()
    began = time.monotonic()
    report = encode_source(
        hasher, Source(source), codes, workers=EncodingWorkers(engine="ray", address=cluster.address, device="cpu")
    )
    seconds = time.monotonic() - began
    killer.ended.set()
    killer.join()
    cluster.shutdown()
    names: list[str] = []
    equal = True
    for block in CodeFolder(codes):
        names += block.names
        equal &= block.codes.tolist() == [expected[name] for name in block.names]
    once = sorted(names) == sorted(expected)
    print(
        f"{source}: {len(names)} images in {report.blocks} files, {len(killer.killed)} kills, {seconds:.0f} s: every "
        f"id once {once}, codes equal to one machine's {equal}; MiB of this process and of the largest worker in each "
        f"quarter: {killer.memory_by_quarters()}"
    )


def bare(folder: Path, codes: Path, hasher: ImageHasher) -> None:
    """Compare CPU times of one thread, in turn."""
    torch.set_num_threads(1)
    hasher.threads = 1
    paths = sorted(folder.rglob("*.png"))
    encode_source(hasher, Source(str(folder)), codes, workers=EncodingWorkers(1, device="cpu"))
    made = CodeFolder(codes).encoding
    work = Work(made.source, str(codes), made.hasher, "cpu")
    ratios = []
    for turn in range(ROUNDS + 1):
        began = time.process_time()
        for batch in image_batches(paths, (3, 32, 32), IMAGES_PER_BLOCK, threads=1):
            hasher.encode(batch.pixels)
        middle = time.process_time()
        for block in made.source.blocks(IMAGES_PER_BLOCK):
            encode_block(block, work)
        alone, whole = middle - began, time.process_time() - middle
        if turn:
            ratios.append(alone / whole)
            print(f"bare {len(paths) / alone:.0f} images a CPU second, with files of codes {len(paths) / whole:.0f}")
    print(f"median share {np.median(ratios):.3f}")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--images", default=100_000)
@click.option("--kills", default=20)
@click.option("--s3", is_flag=True)
@click.option("--bare", "alone", is_flag=True)
def main(folder: Path, images: int, kills: int, s3: bool, alone: bool) -> None:
    """Make the pictures where they are not there yet, and measure."""
    pictures = folder / f"pictures-{images}"
    if not pictures.is_dir():
        make_pictures(pictures, images)
    hasher = ImageHasher.pretrained(HASHER, "cpu")
    if alone:
        bare(pictures, folder / f"bare-{images}", hasher)
        return
    paths = sorted(pictures.rglob("*.png"))
    names = [path.relative_to(pictures).as_posix() for path in paths]
    expected = dict(zip(names, hasher.encode(paths).tolist(), strict=True))
    if not s3:
        with_kills(str(pictures), str(folder / f"codes-{images}"), kills, expected, hasher)
        return
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - of the extra dev

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    os.environ.update(AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}", AWS_DEFAULT_REGION="us-east-1")
    os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test")
    import s3fs  # noqa: PLC0415 - of the extra s3

    store = s3fs.S3FileSystem()
    store.mkdir("bucket")
    store.put(str(pictures) + "/", "bucket/pictures/", recursive=True)
    with_kills("s3://bucket/pictures", "s3://bucket/codes", kills, expected, hasher)
    server.stop()


if __name__ == "__main__":
    main()
