"""A block of a source -> images under their names -> a file of codes, by any worker."""

import functools
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow
import pyarrow.parquet
import torch

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import is_remote, joined_address, local_path, reached, read_all
from deephash_pipeline.encoding.code_folder import Broken, CodeBlock, CodeFolder
from deephash_pipeline.encoding.listing import ListedBlock, Source
from deephash_pipeline.images.decoding.formats import SUFFIXES

if TYPE_CHECKING:
    from deephash_pipeline.deephash import ImageHasher

OBJECTS_AT_A_TIME = 128
"""Objects that are asked of a store at once, and rows of Parquet that are in memory."""
READ_AHEAD = 2**24
LABEL = ".cls"


class NamedImage(NamedTuple):
    """An image to be encoded.

    Attributes:
        name: id of the image.
        image: path of its file, or contents; empty where there is none.
        label: name of its class, if it has one; of an image in a tar shard `ShardLabels` has it.
    """

    name: str
    image: Path | bytes
    label: str | None


class ShardLabels:
    """Labels of a tar shard, wherever in it they stand: all are known once it is read.

    An image has the label that is called as it is, else that of a shorter name, up to a dot: `1.left.png` has that of
    `1.left.cls`, or of `1.cls`.

    Example:
        >>> labels = ShardLabels()
        >>> labels.add("a/1.v2.cls", b"cat")
        >>> labels.add("a/1.cls", b"dog")
        >>> labels.of("a/1.v2.png"), labels.of("a/1.v3.png"), labels.of("a/2.png")
        ('cat', 'dog', None)
    """

    def __init__(self) -> None:
        self._of_stem: dict[str, str | None] = {}

    def add(self, name: str, content: bytes) -> None:
        """Take the label in a file of the shard; the first of those of one name stays."""
        text = content.decode(errors="replace").strip() or None
        self._of_stem.setdefault(name[: -len(LABEL)], text)

    def of(self, name: str) -> str | None:
        """The label of an image of the shard; None if it has none."""
        folder, slash, stem = name.rpartition("/")
        while "." in stem and self._of_stem:
            stem = stem.rpartition(".")[0]
            if (known := folder + slash + stem) in self._of_stem:
                return self._of_stem[known]
        return None


def images_of(block: ListedBlock, source: Source, labels: ShardLabels) -> Iterator[NamedImage]:
    """Read the images of a block; those of shards one after the other, those of a store some at a time.

    A shard that ends in the middle gives what is before that, and a last image with the shard's name and no content.

    Args:
        block: the block.
        source: source that it is of.
        labels: labels that a tar shard adds its own to.

    Raises:
        InputError: a store cannot be reached.
    """
    if block.row_groups:
        return _of_parquet(block, source)
    if block.shard:
        return _of_tar(block, source, labels)
    if is_remote(source.root) or any(is_remote(entry.name) for entry in block.entries):
        return _of_store(block, source)
    paths = (local_path(joined_address(source.root, entry.name)) for entry in block.entries)
    return (NamedImage(entry.name, path, entry.label) for entry, path in zip(block.entries, paths, strict=True))


def _of_store(block: ListedBlock, source: Source) -> Iterator[NamedImage]:
    for first in range(0, len(block.entries), OBJECTS_AT_A_TIME):
        entries = block.entries[first : first + OBJECTS_AT_A_TIME]
        addresses = [joined_address(source.root, entry.name) for entry in entries]
        if not all(map(is_remote, addresses)):
            raise InputError(f"{source.address} lists files of a disk and of a store: make two lists")
        for entry, content in zip(entries, read_all(addresses), strict=True):
            yield NamedImage(entry.name, content or b"", entry.label)


def _of_tar(block: ListedBlock, source: Source, labels: ShardLabels) -> Iterator[NamedImage]:
    """Stream a shard: images are files with an image's suffix, labels the texts of those with the suffix ``.cls``."""
    options = {"block_size": READ_AHEAD, "cache_type": "readahead"} if is_remote(source.root) else {}
    address = joined_address(source.root, block.shard)
    with reached(address) as (filesystem, path), filesystem.open(path, "rb", **options) as file:
        for name, content in _files_of(file, block.size):
            if name.lower().endswith(LABEL):
                labels.add(f"{block.shard}/{name}", content)
            else:
                yield NamedImage(f"{block.shard}/{name}" if name else block.shard, content, None)


def _files_of(file: IO[bytes], size: int) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the files of a shard; a last one without a name if it ends in the middle."""
    try:
        with tarfile.open(fileobj=file, mode="r|") as shard:
            for member in shard:
                name = PurePosixPath(member.name)
                # As in folders, names that begin with a dot are not for the user, such as macOS's `._1.png`.
                shown = not name.name.startswith(".") and name.suffix.lower() in {*SUFFIXES, LABEL}
                extracted = shard.extractfile(member) if shown and member.isfile() else None
                if extracted is not None:
                    yield member.name, extracted.read()
        # A header that is cut off looks like the end; before the true end is a block of zeros.
        if shard.offset + tarfile.BLOCKSIZE > size:
            raise tarfile.ReadError("it has no end")
    except (tarfile.TarError, EOFError):
        yield "", b""


def _of_parquet(block: ListedBlock, source: Source) -> Iterator[NamedImage]:
    with reached(joined_address(source.root, block.shard)) as (filesystem, path), filesystem.open(path, "rb") as file:
        table = pyarrow.parquet.ParquetFile(file)
        there = table.schema_arrow.names
        columns = [name for name in (source.image_column, "id", "label") if name in there]
        rows = count(block.first_row)
        for batch in table.iter_batches(OBJECTS_AT_A_TIME, row_groups=list(block.row_groups), columns=columns):
            for row in batch.to_pylist():
                number = next(rows)
                image = row[source.image_column]
                content = image.get("bytes") if isinstance(image, dict) else image
                name, label = row.get("id"), row.get("label")
                yield NamedImage(
                    f"{block.shard}:{number}" if name is None else str(name),
                    content if isinstance(content, bytes) else b"",
                    None if label is None else str(label),
                )


@dataclass(frozen=True)
class Work:
    """What is the same for all blocks.

    Attributes:
        source: source of the images.
        codes: address of the folder of codes, which has the hasher.
        hasher: digest of the hasher's file.
        device: device to encode on.
    """

    source: Source
    codes: str
    hasher: str
    device: str


def encode_block(block: ListedBlock, work: Work) -> tuple[int, list[Broken]]:
    """Encode a block on one thread and write its codes; tell how many images it has, and which are left out.

    Raises:
        InputError: the source, the hasher or the folder of codes cannot be reached.
    """
    torch.set_num_threads(1)
    made = codes_of_block(block, work.source, _hasher(work.codes, work.hasher, work.device))
    CodeFolder(work.codes).write(block.digest, made)
    return len(made.names), made.broken


def codes_of_block(block: ListedBlock, source: Source, hasher: "ImageHasher") -> CodeBlock:
    """Encode the images of a block; an id that comes again is left out."""
    listed: list[tuple[str, str | None]] = []
    known: set[str] = set()
    broken: list[Broken] = []
    of_shard = ShardLabels()

    def images() -> Iterator[Path | bytes]:
        for name, image, label in images_of(block, source, of_shard):
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
    names = [listed[row][0] for row in rows]
    labels = [listed[row][1] or of_shard.of(listed[row][0]) for row in rows]
    return CodeBlock(names, np.concatenate(codes), labels, sorted(broken))


def _refused(name: str, image: Path | bytes, label: str | None, known: set[str]) -> str | None:
    if image == b"":
        return "it is not there, is empty, or a shard that ends in the middle"
    if name in known:
        return "its id has come before"
    try:
        f"{name}{label}".encode()
    except UnicodeEncodeError:
        return "its name or its folder's is no UTF-8: rename it"
    return None


@functools.lru_cache(maxsize=1)
def _hasher(codes: str, digest: str, device: str) -> "ImageHasher":
    """Load the hasher once in a process."""
    assert digest, "a hasher that was exchanged for another is loaded anew"
    hasher = CodeFolder(codes).hasher(device)
    # As many workers as cores decode already.
    hasher.threads = 1
    return hasher
