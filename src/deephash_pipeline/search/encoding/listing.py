"""A source of images -> its blocks, the same ones whenever and wherever it is listed."""

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

import pyarrow
import pyarrow.parquet
import xxhash

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import (
    exists,
    holds_index,
    is_folder,
    is_remote,
    joined,
    local_path,
    reached,
    read_bytes,
    stamp_of,
    walk,
)
from deephash_pipeline.images.decoding.formats import FORMAT_NAMES, SUFFIXES, is_image, only_images
from deephash_pipeline.images.sources.table import read_listing

Kind = Literal["files", "tar", "parquet"]

KINDS = f"{FORMAT_NAMES} files, .tar shards or .parquet files"


class Entry(NamedTuple):
    """An image file: its name below the source, which is its id, and the name of its class, if it has one.

    Example:
        >>> Entry("cat/1.png", "cat").label
        'cat'
    """

    name: str
    label: str | None


@dataclass(frozen=True)
class Block:
    """Images that are encoded together, into one file.

    Attributes:
        entries: names of image files; empty for a shard.
        shard: name of a tar shard or of a Parquet file below the source; "" for image files.
        size: size of the shard in bytes.
        row_groups: numbers of row groups of a Parquet file that follow one another.
        first_row: number of their first row in the file.
        stamps: sizes and times of change of its files; empty in an object store.

    Example:
        >>> cat, dog = (Block((Entry(f"{name}/1.png", name),)) for name in ("cat", "dog"))
        >>> cat.digest == dog.digest, len(cat.digest)
        (False, 32)
    """

    entries: tuple[Entry, ...] = ()
    shard: str = ""
    size: int = 0
    row_groups: tuple[int, ...] = ()
    first_row: int = 0
    stamps: tuple[str | None, ...] = ()

    @property
    def digest(self) -> str:
        """What tells the block from others, and from itself before one of its files has changed."""
        return xxhash.xxh3_128_hexdigest(repr(self).encode())


@dataclass(frozen=True)
class Source:
    """Images to be encoded.

    Attributes:
        address: path or URL of a folder, which may be in an object store, of a list of paths (.txt, or .csv with a
            column `path` and perhaps `label`), of a tar shard or a Parquet file; or a glob of shards.
        image_column: column of Parquet files; it has contents of image files, or structs with a field `bytes`. Columns
            `id` and `label` may be there too; without the first, ids are ``<file>:<row>``.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     for name in ("1.png", "2.png", "3.png"):
        ...         open(f"{folder}/{name}", "wb").close()
        ...     [len(block.entries) for block in Source(folder).blocks(images_per_block=2)]
        [2, 1]
    """

    address: str
    image_column: str = "image"

    @property
    def root(self) -> str:
        """The folder that names start from."""
        if self._is_glob or self.address.lower().endswith((".txt", ".csv", ".parquet", ".tar")):
            fixed = self.address[: min((self.address.find(c) for c in "*?[" if c in self.address), default=None)]
            return fixed.rpartition("/")[0] or ("/" if fixed.startswith("/") else ".")
        return self.address

    @property
    def _is_glob(self) -> bool:
        return any(character in self.address for character in "*?[") and not exists(self.address)

    def blocks(self, images_per_block: int) -> Iterator[Block]:
        """List the blocks of the source, one after the other.

        A block of image files has `images_per_block` of them, in the order of their names (in a folder first its files,
        then its subfolders); a tar shard is one block; of a Parquet file so many row groups are, as have that number of
        rows.

        Raises:
            InputError: the source is not there, cannot be read, has no image, or files of several kinds.
        """
        blocks = self._unstamped(images_per_block)
        first = next(blocks, None)
        if first is None:
            raise InputError(f"there is no image in {self.address}: give {KINDS}, or a list of paths")
        for block in chain([first], blocks):
            names = [block.shard] if block.shard else [entry.name for entry in block.entries]
            places = [joined(self.root, name) for name in names]
            stamps = [None if is_remote(place) else stamp_of(local_path(place)) for place in places]
            yield replace(block, stamps=tuple(stamps))

    def _unstamped(self, images_per_block: int) -> Iterator[Block]:
        if self.address.lower().endswith((".txt", ".csv")):
            yield from _of_entries(iter(_listed(self.address)), images_per_block)
            return
        names = self._names()
        first = next(names, None)
        if first is None:
            return
        kind = _kind(first) or "files"
        same = self._of_one_kind(first, kind, names)
        if kind == "files":
            entries = (Entry(name, PurePosixPath(self.root, name).parent.name or None) for name in same)
            yield from _of_entries(entries, images_per_block)
        elif kind == "tar":
            yield from (Block(shard=name, size=self._size(name)) for name in same)
        else:
            for name in same:
                yield from self._of_parquet(name, images_per_block)

    def _names(self) -> Iterator[str]:
        if self._is_glob:
            found: list[str] = self._matched()
        elif not is_folder(self.address):
            if not exists(self.address):
                raise InputError(f"{self.address} is not there: give a folder, a list, shards or a glob of them")
            found = [self.address.rpartition("/")[2]]
        else:
            if not is_remote(self.address) and holds_index(local_path(self.address)):
                raise InputError(f"{self.address} is an index, whose pictures are its own: give a folder of images")
            yield from only_images(walk(self.address), self._is_one)
            return
        yield from only_images(sorted(found), self._is_one)

    def _is_one(self, name: str) -> bool:
        if _kind(name) is not None or is_remote(self.address):
            return _kind(name) is not None
        return is_image(os.path.join(local_path(self.root), name))

    def _matched(self) -> list[str]:
        if not is_remote(self.address):
            root = str(local_path(self.root))
            found = [PurePosixPath(path).relative_to(root) for path in glob.glob(self.address, recursive=True)]
            # Two stars would follow links, also in circles.
            followed = "**" in self.address
            return [
                name.as_posix()
                for name in found
                if not (followed and any(Path(root, above).is_symlink() for above in name.parents))
            ]
        with reached(self.address) as (filesystem, path), reached(self.root) as (_, root):
            try:
                names = [match[len(root) :].lstrip("/") for match in filesystem.glob(path)]
            except ValueError as error:
                raise InputError(f"{self.address} is no pattern of names ({error}): mend it") from error
        # As on a disk.
        return [name for name in names if not any(part.startswith(".") for part in name.split("/"))]

    def _of_one_kind(self, first: str, kind: Kind | None, names: Iterator[str]) -> Iterator[str]:
        yield first
        for name in names:
            if (_kind(name) or "files") != kind:
                raise InputError(
                    f"{self.address} has files of several kinds, {first} and {name}: give a glob such as "
                    f"{joined(self.root, '*' + PurePosixPath(name).suffix)}"
                )
            yield name

    def _size(self, name: str) -> int:
        with reached(joined(self.root, name)) as (filesystem, path):
            return int(filesystem.size(path))

    def _of_parquet(self, name: str, images_per_block: int) -> Iterator[Block]:
        address = joined(self.root, name)
        with reached(address) as (filesystem, path):
            size = int(filesystem.size(path))
            try:
                with filesystem.open(path, "rb") as file:
                    layout = pyarrow.parquet.ParquetFile(file).metadata
                    columns = layout.schema.to_arrow_schema().names
                    rows = [layout.row_group(group).num_rows for group in range(layout.num_row_groups)]
            except pyarrow.ArrowInvalid as error:
                raise InputError(f"{address} cannot be read as Parquet ({error}): make or copy it again") from error
        if self.image_column not in columns:
            raise InputError(
                f"{address} has no column `{self.image_column}`: name that of the images with --image-column, one of "
                f"{', '.join(columns)}"
            )
        groups: list[int] = []
        first_row = taken = 0
        for group, count in enumerate(rows):
            groups.append(group)
            taken += count
            if taken >= images_per_block or group == len(rows) - 1:
                yield Block(shard=name, size=size, row_groups=tuple(groups), first_row=first_row)
                groups, first_row, taken = [], first_row + taken, 0


def _kind(name: str) -> Kind | None:
    lowered = name.lower()
    if lowered.endswith(".tar"):
        return "tar"
    if lowered.endswith(".parquet"):
        return "parquet"
    return "files" if PurePosixPath(lowered).suffix in SUFFIXES else None


def _of_entries(entries: Iterator[Entry], images_per_block: int) -> Iterator[Block]:
    while block := tuple(islice(entries, images_per_block)):
        yield Block(block)


def _listed(address: str) -> list[Entry]:
    """Read a list of paths: each once, in the order of their names."""
    if address.lower().endswith(".csv"):
        table = read_listing(address, set())
        labels = table["label"] if "label" in table else [None] * len(table)
        return sorted(Entry(name, label or None) for name, label in zip(table["path"], labels, strict=True))
    try:
        lines = {line.strip() for line in read_bytes(address).decode().splitlines()} - {""}
    except FileNotFoundError:
        raise InputError(f"{address} is not there: give a list of paths, a line each") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{address} is no UTF-8 ({error}): save the list again") from error
    return [Entry(name, PurePosixPath(name).parent.name or None) for name in sorted(lines)]
