"""A source of images -> its blocks, the same ones whenever and wherever it is listed."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pyarrow
import pyarrow.parquet
import xxhash

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.folders import holds_index, matches, walk
from deephash_pipeline.common.stores import (
    exists,
    is_folder,
    is_remote,
    joined_address,
    local_path,
    reached,
    read_bytes,
    stamp_of,
)
from deephash_pipeline.images.decoding.formats import FORMAT_NAMES, SUFFIXES, is_image, lacks_reader, only_images
from deephash_pipeline.images.sources.table import read_listing

SHARDS = {".tar": "tar", ".parquet": "parquet"}
LISTED_KINDS = f"{FORMAT_NAMES} files, .tar shards or .parquet files"


class Entry(NamedTuple):
    """An image file: its name below the source, which is its id, and the name of its class, if it has one.

    Example:
        >>> Entry("cat/1.png", "cat").label
        'cat'
    """

    name: str
    label: str | None


@dataclass(frozen=True)
class ListedBlock:
    """Images that are encoded together, into one file.

    Attributes:
        entries: names of image files; empty for a shard.
        shard: name of a tar shard or of a Parquet file below the source; "" for image files.
        size: size of the shard in bytes.
        row_groups: numbers of row groups of a Parquet file that follow one another.
        first_row: number of their first row in the file.
        stamps: sizes and times of change of its files; None for what cannot be read, and in an object store.

    Example:
        >>> cat, dog = (ListedBlock((Entry(f"{name}/1.png", name),)) for name in ("cat", "dog"))
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
            column `path` and perhaps `label`), of an image, a tar shard or a Parquet file; or a glob of them.
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

    @cached_property
    def root(self) -> str:
        """The folder that names start from."""
        fixed = re.split(r"[*?\[]", self.address)[0] if self._is_glob else self.address
        is_list_or_shard = self.address.lower().endswith((".txt", ".csv", *SHARDS))
        if fixed == self.address and (is_folder(fixed) or not (is_list_or_shard or exists(fixed))):
            return fixed
        return fixed.rpartition("/")[0] or ("/" if fixed.startswith("/") else ".")

    @property
    def _is_glob(self) -> bool:
        return any(character in self.address for character in "*?[") and not exists(self.address)

    def blocks(self, images_per_block: int) -> list[ListedBlock]:
        """List the blocks of the source.

        A block of image files has `images_per_block` of them, in the order of their names (in a folder first its files,
        then its subfolders); a tar shard is one block; of a Parquet file so many row groups are, as have that number of
        rows.

        Raises:
            InputError: the source is not there, cannot be read, has no image, or files of several kinds.
        """
        blocks = []
        for block in self._unstamped(images_per_block):
            names = [block.shard] if block.shard else [entry.name for entry in block.entries]
            places = [joined_address(self.root, name) for name in names]
            blocks.append(replace(block, stamps=tuple(map(_stamp, places))))
        if not blocks:
            raise InputError(f"there is no image in {self.address}: give {LISTED_KINDS}, or a list of paths")
        return blocks

    def _unstamped(self, images_per_block: int) -> Iterator[ListedBlock]:
        if self.address.lower().endswith((".txt", ".csv")) and not is_folder(self.address):
            yield from _of_entries(_listed(self.address), images_per_block)
            return
        names = list(only_images(self._names(), self._is_one))
        kinds = {_kind(name) or "files": name for name in reversed(names)}
        if len(kinds) > 1:
            first, other = sorted(kinds.values(), key=names.index)[:2]
            raise InputError(
                f"{self.address} has files of several kinds, {first} and {other}: give a glob such as "
                f"{joined_address(self.root, '*' + PurePosixPath(other).suffix)}"
            )
        if "tar" in kinds:
            yield from (ListedBlock(shard=name, size=self._size(name)) for name in names)
        elif "parquet" in kinds:
            for name in names:
                yield from self._of_parquet(name, images_per_block)
        else:
            entries = [Entry(name, PurePosixPath(self.root, name).parent.name or None) for name in names]
            yield from _of_entries(entries, images_per_block)

    def _names(self) -> Iterable[str]:
        if self._is_glob:
            return sorted(self._matched())
        if is_folder(self.address):
            if not is_remote(self.address) and holds_index(local_path(self.address)):
                raise InputError(f"{self.address} is an index, whose pictures are its own: give a folder of images")
            return walk(self.address)
        if not exists(self.address):
            raise InputError(f"{self.address} is not there: give a folder, a list, shards or a glob of them")
        return [self.address.rpartition("/")[2]]

    def _is_one(self, name: str) -> bool:
        is_local = not is_remote(self.address)
        return _kind(name) is not None or (is_local and is_image(os.path.join(local_path(self.root), name)))

    def _matched(self) -> list[str]:
        try:
            if is_remote(self.address):
                with reached(self.address) as (filesystem, path), reached(self.root) as (_, root):
                    names = [match[len(root) :].lstrip("/") for match in filesystem.glob(path)]
            else:
                found = matches(os.fspath(local_path(self.address)))
                names = [Path(path).relative_to(local_path(self.root)).as_posix() for path in found]
        except ValueError as error:
            raise InputError(f"{self.address} is no pattern of names ({error}): mend it") from error
        return [name for name in names if not any(part.startswith(".") for part in name.split("/"))]

    def _size(self, name: str) -> int:
        with reached(joined_address(self.root, name)) as (filesystem, path):
            return int(filesystem.size(path))

    def _of_parquet(self, name: str, images_per_block: int) -> Iterator[ListedBlock]:
        address = joined_address(self.root, name)
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
                yield ListedBlock(shard=name, size=size, row_groups=tuple(groups), first_row=first_row)
                groups, first_row, taken = [], first_row + taken, 0


def _stamp(address: str) -> str | None:
    """Give the stamp of a file that can be read here, so that its block is made again once it can."""
    is_readable = not is_remote(address) and not lacks_reader(address) and os.access(local_path(address), os.R_OK)
    return stamp_of(local_path(address)) if is_readable else None


def _kind(name: str) -> str | None:
    suffix = PurePosixPath(name.lower()).suffix
    return SHARDS.get(suffix, "files" if suffix in SUFFIXES else None)


def _of_entries(entries: Sequence[Entry], images_per_block: int) -> Iterator[ListedBlock]:
    for first in range(0, len(entries), images_per_block):
        yield ListedBlock(tuple(entries[first : first + images_per_block]))


def _listed(address: str) -> list[Entry]:
    """Read a list of paths: each once, in the order of their names."""
    if address.lower().endswith(".csv"):
        table = read_listing(address, set())
        labels = table["label"] if "label" in table else [None] * len(table)
        return sorted(Entry(name, label or None) for name, label in zip(table["path"], labels, strict=True))
    try:
        lines = {line.strip() for line in read_bytes(address).decode("utf-8-sig").splitlines()} - {""}
    except FileNotFoundError:
        raise InputError(f"{address} is not there: give a list of paths, a line each") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{address} is no UTF-8 ({error}): save the list again") from error
    # Of several spellings of a path, such as `a.png` and `./a.png`, one stays.
    names = {
        name if is_remote(joined_address(address, name)) else os.path.normpath(name): name for name in sorted(lines)
    }
    return [Entry(name, PurePosixPath(name).parent.name or None) for name in sorted(names.values())]
