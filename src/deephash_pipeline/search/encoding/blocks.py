"""One block: read, decoded, encoded, written. The same work in every worker, of whatever engine."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from deephash_pipeline.deephash import ImageHasher
from deephash_pipeline.search.encoding.code_folder import Broken, CodeBlock, CodeFolder
from deephash_pipeline.search.encoding.listing import Block, Source
from deephash_pipeline.search.encoding.reading import images_of

NO_CONTENT = "it is not there, is empty, or a shard that ends in the middle"


@dataclass(frozen=True)
class Work:
    """What is the same for all blocks.

    Attributes:
        source: of the images.
        codes: address of the folder of codes, which has the hasher.
        listing: digest of the listing.
        hasher: digest of the hasher's file.
        device: to encode on.
    """

    source: Source
    codes: str
    listing: str
    hasher: str
    device: str


@dataclass(frozen=True)
class EncodedBlock:
    """What became of a block.

    Attributes:
        number: position of the block in the listing.
        images: encoded.
        broken: those that were left out.

    Example:
        >>> EncodedBlock(number=0, images=1024, broken=()).images
        1024
    """

    number: int
    images: int
    broken: tuple[Broken, ...]


def encode_block(block: Block, work: Work) -> EncodedBlock:
    """Encode a block on one thread and write its codes.

    Raises:
        InputError: the source, the hasher or the folder of codes cannot be reached.
    """
    torch.set_num_threads(1)
    made = codes_of(block, work.source, _hasher(work.codes, work.hasher, work.device))
    CodeFolder(work.codes).write(block.number, work.listing, made, block.stamp)
    return EncodedBlock(block.number, len(made.names), tuple(made.broken))


def codes_of(block: Block, source: Source, hasher: ImageHasher) -> CodeBlock:
    """Encode the images of a block; an id that comes again is left out."""
    listed: list[tuple[str, str | None]] = []
    known: set[str] = set()
    broken: list[Broken] = []

    def images() -> Iterator[Path | bytes]:
        for name, image, label in images_of(block, source):
            if reason := _refused(name, image, label, known):
                broken.append(Broken(name.encode(errors="backslashreplace").decode(), reason))
                continue
            known.add(name)
            listed.append((name, label))
            yield image

    rows, codes = [], [np.empty((0, -(-hasher.code_length // 8)), np.uint8)]
    for batch in hasher.encode_batches(images(), errors="skip"):
        rows += batch.rows.tolist()
        codes.append(batch.codes)
        for skipped in batch.skipped:
            name = listed[skipped.row][0]
            # Of a file the reason names the path, which is another one where the disk is mounted elsewhere.
            broken.append(Broken(name, skipped.reason.replace(skipped.name, name)))
    names, labels = [listed[row][0] for row in rows], [listed[row][1] for row in rows]
    return CodeBlock(names, np.concatenate(codes), labels, sorted(broken))


def _refused(name: str, image: Path | bytes, label: str | None, known: set[str]) -> str | None:
    if image == b"":
        return NO_CONTENT
    if name in known:
        return "its id has come before"
    try:
        f"{name}{label}".encode()
    except UnicodeEncodeError:
        return "its name or its folder's is no UTF-8: rename it"
    return None


@functools.lru_cache(maxsize=1)
def _hasher(codes: str, digest: str, device: str) -> ImageHasher:
    """Load the hasher once in a process."""
    assert digest, "a hasher that was exchanged for another is loaded anew"
    hasher = CodeFolder(codes).hasher(device)
    # As many workers as cores decode already.
    hasher.threads = 1
    return hasher
