"""Vectors of several files, one after the other, as of one."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.folders import matches, walk
from deephash_pipeline.embeddings.sources import (
    VECTOR_SUFFIXES,
    ArrayVectors,
    Block,
    ParquetVectors,
    VectorSource,
    open_file,
)


class ShardedVectors:
    """Vectors of files that follow one another.

    Args:
        name: name of all in messages.
        shards: the files, opened.

    Attributes:
        ids: ids of all rows; None where no file has them.
        left_out: columns that are neither ids nor metadata.

    Raises:
        InputError: they differ in width, or some have ids, or columns, that others lack.

    Example:
        >>> shards = ShardedVectors("two", [ArrayVectors(np.eye(3)), ArrayVectors(np.ones((2, 3)))])
        >>> shards.count, [block.start for block in shards.blocks(2)], shards.take(np.array([0, 3])).tolist()
        (5, [0, 2, 3], [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    """

    def __init__(self, name: str, shards: Sequence[ArrayVectors | ParquetVectors]) -> None:
        self.name, self._shards, first = name, shards, shards[0]
        self.width = first.width
        for shard in shards:
            if shard.width != self.width:
                raise InputError(f"{shard.name} has {shard.width} numbers a row, {first.name} has {self.width}")
            if (_ids(shard) is None) != (_ids(first) is None):
                raise InputError(f"{shard.name} and {first.name}: one has ids and the other none: name files of a kind")
            if _columns(shard) != _columns(first):
                raise InputError(f"{shard.name} has other columns than {first.name}: name files of a kind")
        self._starts = np.cumsum([0, *(shard.count for shard in shards)])
        self.count = int(self._starts[-1])
        known = [_ids(shard) for shard in shards]
        self.ids = None if known[0] is None else list(chain.from_iterable(ids for ids in known if ids is not None))
        self.left_out: list[str] = getattr(first, "left_out", [])

    def blocks(self, rows: int) -> Iterator[Block]:
        """All vectors, in order, at most so many at a time; no block is of two files."""
        for start, shard in zip(self._starts.tolist(), self._shards, strict=False):
            for block in shard.blocks(rows):
                yield block._replace(start=start + block.start)

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Vectors of some rows, which ascend."""
        return np.concatenate(list(self.parts(rows)))

    def parts(self, rows: NDArray[np.int64]) -> Iterator[NDArray[Any]]:
        """Vectors of some rows, some at a time."""
        for start, shard in zip(self._starts.tolist(), self._shards, strict=False):
            inside = rows[(rows >= start) & (rows < start + shard.count)]
            if len(inside):
                yield from shard.parts(inside - start)

    def values(self, column: str) -> list[Any]:
        """All values of a column of plain ones; see `ParquetVectors`."""
        found: list[Any] = []
        for shard in self._shards:
            if not isinstance(shard, ParquetVectors):
                raise InputError(f"{shard.name} has no columns: give a text file with a line for each vector")
            found += shard.values(column)
        return found

    @property
    def has_columns(self) -> bool:
        """Whether ids and labels are columns of the files."""
        return all(isinstance(shard, ParquetVectors) for shard in self._shards)


def _ids(shard: ArrayVectors | ParquetVectors) -> Sequence[Any] | None:
    return getattr(shard, "ids", None)


def _columns(shard: ArrayVectors | ParquetVectors) -> list[str]:
    return sorted(next(shard.blocks(1)).metadata)


def open_vectors(path: str | Path, column: str | None = None, ids: str | None = None) -> VectorSource | ShardedVectors:
    """Open vectors; nothing but the heads of files is read.

    Args:
        path: ``.npy``, ``.safetensors`` or ``.parquet``; or a folder or a glob of files of one of these kinds, which
            follow one another in the order of their names.
        column: column of a Parquet file, or tensor of a safetensors file; by default the only one that can be meant.
        ids: column of a Parquet file that has the ids.

    Raises:
        InputError: it is not there, is damaged, or has no vectors.
    """
    files = _files_of(Path(path))
    kinds = {VECTOR_SUFFIXES.get(file.suffix.lower(), ""): file for file in reversed(files)}
    if len(kinds) > 1:
        first, other = sorted(kinds.values())[:2]
        raise InputError(f"{path} has files of several kinds, {first} and {other}: name those of one by a glob")
    opened = [open_file(file, column, ids) for file in files]
    return opened[0] if len(opened) == 1 else ShardedVectors(str(path), opened)


def _files_of(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = [path / name for name in walk(path)] if path.is_dir() else [Path(name) for name in matches(str(path))]
    files = sorted(file for file in found if file.suffix.lower() in VECTOR_SUFFIXES and file.is_file())
    if not files:
        lacks = "has no file of vectors" if path.is_dir() else "is not there"
        raise InputError(f"{path} {lacks}: name a file, a folder or a glob of .npy, .safetensors or .parquet")
    return files


AnyVectors: TypeAlias = ArrayVectors | ParquetVectors | ShardedVectors


def source_of(vectors: Any, metadata: Mapping[str, Sequence[Any]] | None) -> AnyVectors:
    """What a user gives as vectors, as a source.

    Args:
        vectors: an array, a path of `open_vectors`, or a source.
        metadata: values of an array's vectors by column, one for each.

    Raises:
        InputError: see `open_vectors`, or metadata are given of a file.
    """
    if isinstance(vectors, str | Path):
        vectors = open_vectors(vectors)
    if not isinstance(vectors, np.ndarray) and hasattr(vectors, "blocks"):
        if metadata:
            raise InputError("metadata are of an array: give them as columns of the file, or load the vectors")
        source: AnyVectors = vectors
        return source
    return ArrayVectors(vectors, metadata=metadata)
