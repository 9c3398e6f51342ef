"""All images of a source -> a folder of their codes, each encoded exactly once, here or as tasks of Ray."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import xxhash

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.fork_server import end_with_parent
from deephash_pipeline.common.progress import count_steps
from deephash_pipeline.common.ray_cluster import connected_to_ray
from deephash_pipeline.common.scripts import refuse_unguarded_script
from deephash_pipeline.common.stores import is_remote, local_path
from deephash_pipeline.encoding.blocks import Work, encode_block
from deephash_pipeline.encoding.code_folder import Broken, CodeFolder, Encoding
from deephash_pipeline.encoding.listing import ListedBlock, Source

if TYPE_CHECKING:
    from deephash_pipeline.deephash import ImageHasher

IMAGES_PER_BLOCK = 1024
BLOCKS_AHEAD = 2
"""Blocks for each worker that are under way or wait beside it."""
RETRIES = 20
"""How often Ray begins a block anew whose worker or node was lost. Errors of the block itself are no such loss."""
GPU_SHARE = 0.25
"""Of a device for each task of Ray: one decodes while another's images are on it."""

Encoded: TypeAlias = tuple[int, list[Broken]]
"""How many images of a block are encoded, and which are not."""
Submit: TypeAlias = Callable[[ListedBlock], Future[Encoded]]
EncoderPool: TypeAlias = tuple[Callable[[Work], Submit], Callable[[], int]]
"""What is told once what all blocks share, and gives what submits a block; and what says for how many there is room."""


@dataclass
class EncodingReport:
    """What became of a source's images.

    Attributes:
        blocks: files of codes there are now.
        there: number of blocks that were there already.
        images: encoded this time.
        broken: left out this time.

    Example:
        >>> EncodingReport(blocks=3, there=1, images=2048).broken
        []
    """

    blocks: int = 0
    there: int = 0
    images: int = 0
    broken: list[Broken] = field(default_factory=list)


@dataclass(frozen=True)
class EncodingWorkers:
    """Who encodes.

    Attributes:
        count: processes of one thread, or tasks at a time; as many as cores by default.
        engine: ``local`` for processes of this machine, ``ray`` for tasks on a Ray cluster.
        address: address of the cluster, see `deephash_pipeline.common.ray_cluster.connected_to_ray`.
        device: device to encode on: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.

    Example:
        >>> EncodingWorkers(count=2, device="cpu").engine
        'local'
    """

    count: int | None = None
    engine: Literal["local", "ray"] = "local"
    address: str | None = None
    device: str = "auto"


ALL_CORES = EncodingWorkers()


def encode_source(
    hasher: "ImageHasher",
    source: Source,
    folder: str | Path,
    workers: EncodingWorkers = ALL_CORES,
    images_per_block: int | None = None,
) -> EncodingReport:
    """Encode the images of a source into files of codes, those that are not there yet.

    The source is listed in blocks, each block is one file of `CodeFolder`, written whole or not at all: however often
    workers, nodes or this process die, and whatever is done twice, each image is in one file once. Of images that are
    new, have changed since in size or time of change, or can be read only now, the blocks are made again.

    Args:
        hasher: hasher that makes the codes.
        source: source of the images.
        folder: address of the folder of codes.
        workers: workers that encode; processes on all cores of this machine by default.
        images_per_block: number of image files; 1,024 by default, or what the folder was begun with. A multiple of
            1,024 gives equal codes.

    Raises:
        InputError: there is no Ray or no cluster, the source has no image or cannot be read, the folder has codes of
            another hasher or source, or see `encode_blocks`.

    Example:
        >>> import tempfile
        >>> from PIL import Image
        >>> from deephash_pipeline import ImageHasher
        >>> from sklearn.datasets import load_digits
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for number, image in enumerate((load_digits().images[:3] * 15).astype("uint8")):
        ...         _ = Path(folder, f"{number}.png").write_bytes(b"") if number == 2 else Image.fromarray(image).save(
        ...             Path(folder, f"{number}.png")
        ...         )
        ...     hasher = ImageHasher.pretrained("digits-48")
        ...     report = encode_source(hasher, Source(folder), f"{folder}/codes", EncodingWorkers(1))
        ...     [block] = CodeFolder(f"{folder}/codes")
        >>> report.images, report.broken[0].name, block.names, block.codes.shape
        (2, '2.png', ['0.png', '1.png'], (2, 6))
    """
    # Whether workers can be had is known before anything is listed or written.
    with (_tasks_of_ray if workers.engine == "ray" else _processes)(workers) as (submit_with, room):
        codes = CodeFolder(_absolute(folder))
        source = replace(source, address=_absolute(source.address))
        begun = codes.encoding_if_begun()
        size = images_per_block or (begun.images_per_block if begun else IMAGES_PER_BLOCK)
        if size < 1:
            raise InputError(f"{size} images in a block: give 1 or more, best a multiple of {IMAGES_PER_BLOCK}")
        blocks = {block.digest: block for block in source.blocks(size)}
        stored = hasher.content()
        made_from = Encoding(source, size, list(blocks), xxhash.xxh3_128_hexdigest(stored), hasher.code_length)
        codes.begin(made_from, stored)
        done = codes.done()
        waiting = [block for digest, block in blocks.items() if digest not in done]
        submit = submit_with(Work(source, codes.address, made_from.hasher, workers.device))
        report = EncodingReport(len(blocks), len(blocks) - len(waiting))
        with count_steps("blocks", report.blocks, report.there) as advance:
            for images, broken in encode_blocks(iter(waiting), submit, room):
                report.images += images
                report.broken += broken
                advance(f"{report.images:,} images")
        codes.sweep()
        return report


def encode_blocks(blocks: Iterator[ListedBlock], submit: Submit, room: Callable[[], int]) -> Iterator[Encoded]:
    """Encode blocks, which are taken as there is room for them; yield them as they end.

    Args:
        blocks: blocks.
        submit: has a worker encode a block.
        room: says how many may be under way.

    Raises:
        InputError: a worker was killed, or on Ray that of one block again and again; or see
            `deephash_pipeline.encoding.blocks.encode_block`.
    """
    under_way: set[Future[Encoded]] = set()
    while True:
        under_way |= {submit(block) for block in islice(blocks, max(0, room() - len(under_way)))}
        if not under_way:
            return
        ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
        for future in ended:
            yield future.result()


@contextmanager
def _processes(workers: EncodingWorkers) -> Iterator[EncoderPool]:
    """Give processes of this machine; several CUDA devices are shared out among them."""
    refuse_unguarded_script()
    count = workers.count or len(os.sched_getaffinity(0))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    pool = ProcessPoolExecutor(count, context, _prepare, (dict(os.environ),))
    try:
        yield lambda work: lambda block: pool.submit(encode_block, block, work), lambda: BLOCKS_AHEAD * count
    except BrokenProcessPool:
        raise InputError(
            "a worker was killed, as where memory is short: the same command goes on; give it more memory, or fewer "
            "--workers"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare(environment: dict[str, str]) -> None:
    """Make a process a worker: no traceback at Ctrl-C, and no longer a life than the command's."""
    # The server that it comes from may have been started with other credentials of a store.
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


@contextmanager
def _tasks_of_ray(workers: EncodingWorkers) -> Iterator[EncoderPool]:
    """Give tasks of one core on a cluster, whose nodes may come and go: a task begins anew where its node is lost."""
    with connected_to_ray(workers.address, workers.count) as ray:
        options: dict[str, Any] = {"num_cpus": 1, "max_retries": RETRIES, "retry_exceptions": False}
        if workers.device.startswith("cuda") or (workers.device == "auto" and ray.cluster_resources().get("GPU")):
            options["num_gpus"] = GPU_SHARE
        task = ray.remote(**options)(encode_block)

        def room() -> int:
            return workers.count or BLOCKS_AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))

        def submit_with(work: Work) -> Submit:
            sent = ray.put(work)
            return lambda block: task.remote(block, sent).future()

        try:
            yield submit_with, room
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError as error:
            reason = " ".join(str(error).split())[:300]
            raise InputError(f"a block cannot be encoded, its worker was lost {RETRIES} times ({reason})") from error


def _absolute(address: str | Path) -> str:
    """Workers may run elsewhere."""
    return str(address) if is_remote(address) else os.path.abspath(local_path(address))
