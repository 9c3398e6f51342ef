"""All images of a source -> a folder of their codes, each encoded exactly once."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import xxhash

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.progress import count_steps
from deephash_pipeline.common.stores import is_remote, local_path
from deephash_pipeline.deephash import ImageHasher
from deephash_pipeline.search.encoding.blocks import Work
from deephash_pipeline.search.encoding.code_folder import Broken, CodeFolder, Encoding
from deephash_pipeline.search.encoding.listing import Block, Source
from deephash_pipeline.search.encoding.workers import Encoded, encode_locally, encode_on_ray

IMAGES_PER_BLOCK = 1024


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
        count: processes of one thread; as many as cores by default.
        engine: ``local`` for processes of this machine, ``ray`` for tasks on a Ray cluster.
        address: address of the cluster, see `deephash_pipeline.common.ray_cluster.connected`.
        device: device to encode on: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.

    Example:
        >>> EncodingWorkers(count=2, device="cpu").engine
        'local'
    """

    count: int | None = None
    engine: Literal["local", "ray"] = "local"
    address: str | None = None
    device: str = "auto"

    def encode(self, blocks: Iterator[Block], work: Work) -> Iterator[Encoded]:
        """Encode blocks; yield them as they end."""
        if self.engine == "ray":
            return encode_on_ray(blocks, work, self.count, self.address)
        return encode_locally(blocks, work, self.count or len(os.sched_getaffinity(0)))


ALL_CORES = EncodingWorkers()


def encode_source(
    hasher: ImageHasher,
    source: Source,
    folder: str | Path,
    workers: EncodingWorkers = ALL_CORES,
    images_per_block: int | None = None,
) -> EncodingReport:
    """Encode the images of a source into files of codes, those that are not there yet.

    The source is listed in blocks, each block is one file of `CodeFolder`, written whole or not at all: however often
    workers, nodes or this process die, and whatever is done twice, each image is in one file once. Of images that are
    new, or have changed since in size or time of change, the blocks are made again.

    Args:
        hasher: hasher that makes the codes.
        source: source of the images.
        folder: address of the folder of codes.
        workers: workers that encode; processes on all cores of this machine by default.
        images_per_block: number of image files; 1,024 by default, or what the folder was begun with. A multiple of
            1,024 gives equal codes.

    Raises:
        InputError: the source has no image or cannot be read, or the folder has codes of another hasher or source.

    Example:
        >>> import tempfile
        >>> from PIL import Image
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
    work = Work(source, codes.address, made_from.hasher, workers.device)
    report = EncodingReport(len(blocks), len(blocks) - len(waiting))
    with count_steps("blocks", report.blocks, report.there) as advance:
        for images, broken in workers.encode(iter(waiting), work):
            report.images += images
            report.broken += broken
            advance(f"{report.images:,} images")
    codes.sweep()
    return report


def _absolute(address: str | Path) -> str:
    """Workers may run elsewhere."""
    return str(address) if is_remote(address) else os.path.abspath(local_path(address))
