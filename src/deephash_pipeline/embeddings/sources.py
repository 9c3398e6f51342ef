"""Vectors of arrays and files, read block by block: NumPy, safetensors, Parquet."""

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.extras import installing
from deephash_pipeline.embeddings.numbers import array_of, reals, rows_of_lists, widened
from deephash_pipeline.hamming.features import FEATURES_AT_ONCE

SAFETENSORS_DTYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2", "I8": "|i1", "U8": "|u1"}
VECTOR_SUFFIXES = {".npy": "npy", ".safetensors": "safetensors", ".parquet": "parquet", ".pq": "parquet"}
ID_COLUMN = "id"
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Block(NamedTuple):
    """Some rows of a source, one after the other.

    Attributes:
        start: number of the first.
        vectors: float16, float32 or float64 (rows, width).
        metadata: a value for each row, by column.
    """

    start: int
    vectors: NDArray[Any]
    metadata: Mapping[str, Sequence[Any]]


class ArrayVectors:
    """Vectors of an array, in memory or mapped.

    Args:
        array: (n, width) of one of these types: bfloat16, float16, float32, float64, or integers up to 32 bits; or
            whatever `array_of` takes. A single vector (width,) counts as one row. Packed bits are no vectors.
        name: name in messages.
        metadata: a value for each row, by column.
        is_bfloat16: True if the array, uint16, has the bits of such numbers.

    Raises:
        InputError: it has another shape or type, or no number.

    Example:
        >>> [block.start for block in ArrayVectors(np.eye(3)).blocks(2)]
        [0, 2]
    """

    def __init__(
        self,
        array: Any,
        name: str = "vectors",
        metadata: Mapping[str, Sequence[Any]] | None = None,
        is_bfloat16: bool = False,
    ) -> None:
        given = array_of(array, name)
        self.name, self._array, self._metadata = name, given, dict(metadata or {})
        self.count, self.width = given.shape
        self._reals = widened if is_bfloat16 else reals
        for column, values in self._metadata.items():
            if not hasattr(values, "__len__") or len(values) != self.count:
                raise InputError(f"metadata column {column!r} is not one value for each of {self.count} vectors")

    def blocks(self, rows: int) -> Iterator[Block]:
        """All of them, in order, at most so many at a time."""
        for start in range(0, self.count, rows):
            part = slice(start, start + rows)
            yield Block(
                start, self._reals(self._array[part]), {name: values[part] for name, values in self._metadata.items()}
            )

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Some of them, of rows that ascend."""
        return self._reals(self._array[rows])

    def parts(self, rows: NDArray[np.int64]) -> Iterator[NDArray[Any]]:
        """The same, some at a time."""
        for start in range(0, len(rows), FEATURES_AT_ONCE):
            yield self.take(rows[start : start + FEATURES_AT_ONCE])


class ParquetVectors:
    """Vectors of a column of lists in a Parquet file; columns of plain values are metadata.

    Args:
        path: the file.
        column: column with the vectors; the only one of lists by default.
        ids: column with the ids, ``id`` by default if there is one.

    Attributes:
        ids: ids of all rows; None where no column has them.
        left_out: columns that are neither.

    Raises:
        InputError: it cannot be read, or has no such column.
    """

    def __init__(self, path: Path, column: str | None = None, ids: str | None = None) -> None:
        try:
            import pyarrow  # noqa: PLC0415 - other files are read without it
            import pyarrow.compute  # noqa: PLC0415
            import pyarrow.parquet  # noqa: PLC0415
        except ImportError as error:
            raise InputError(f"{path} needs pyarrow ({error}): {installing('pyarrow')}") from error
        self.name, self._arrow = str(path), pyarrow
        self._reading = (OSError, pyarrow.ArrowException)
        try:
            self._file = pyarrow.parquet.ParquetFile(path, memory_map=True)
        except self._reading as error:
            raise self._unreadable(error) from error
        fields = {field.name: field.type for field in self._file.schema_arrow}
        lists = [name for name, kind in fields.items() if self._is_list(kind)]
        if column is None and len(lists) > 1:
            raise InputError(f"{path} has {len(lists)} columns of lists ({', '.join(lists)}): name one by --column")
        self.column = next(iter(lists), "") if column is None else column
        if self.column not in lists:
            named = "" if column is None else f" {column!r}"
            there = ", ".join(f"{name} ({kind})" for name, kind in fields.items())
            raise InputError(f"{path} has no column{named} of lists of floats: cast one to float32; it has {there}")
        id_column = ids if ids is not None else ID_COLUMN if ID_COLUMN in fields else None
        others = {name: kind for name, kind in fields.items() if name not in (self.column, id_column)}
        self._columns = [name for name, kind in others.items() if not pyarrow.types.is_nested(kind)]
        self.left_out = [name for name in others if name not in self._columns]
        self.ids = None if id_column is None else self.values(id_column)
        self.count = self._file.metadata.num_rows
        if not self.count:
            raise InputError(f"{path} has no row: give a file with vectors")
        self.width = next(self.blocks(1)).vectors.shape[1]

    has_columns = True

    def blocks(self, rows: int) -> Iterator[Block]:
        """All vectors, in order, at most so many at a time."""
        yield from self._blocks(rows, self._columns)

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Vectors of some rows, which ascend."""
        return np.concatenate(list(self.parts(rows)))

    def parts(self, rows: NDArray[np.int64]) -> Iterator[NDArray[Any]]:
        """Vectors of some rows, some at a time."""
        for block in self._blocks(65_536, []):
            inside = rows[(rows >= block.start) & (rows < block.start + len(block.vectors))]
            yield block.vectors[inside - block.start]

    def values(self, column: str) -> list[Any]:
        """All values of a column of plain ones.

        Raises:
            InputError: there is none.
        """
        if column not in self._file.schema_arrow.names:
            raise InputError(f"{self.name} has no column {column!r}; it has {', '.join(self._file.schema_arrow.names)}")
        try:
            return self._values(self._file.read([column]).column(0))
        except self._reading as error:
            raise self._unreadable(error) from error

    def _blocks(self, rows: int, columns: Sequence[str]) -> Iterator[Block]:
        start = 0
        try:
            for batch in self._file.iter_batches(rows, columns=[self.column, *columns]):
                vectors = self._vectors(batch.column(self.column), start)
                yield Block(start, vectors, {name: self._values(batch.column(name)) for name in columns})
                start += len(vectors)
        except self._reading as error:
            if "Expected all lists to be of size" in str(error):
                raise InputError(f"{self.name}: a row from {start} on has no vector: mend or drop it") from error
            raise self._unreadable(error) from error

    def _is_list(self, kind: Any) -> bool:
        types = self._arrow.types
        is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        return bool(is_list and (types.is_floating(kind.value_type) or _is_small_integer(types, kind.value_type)))

    def _vectors(self, lists: Any, start: int) -> NDArray[Any]:
        return reals(rows_of_lists(lists, self.name, start, getattr(self, "width", None)))

    def _values(self, column: Any) -> list[Any]:
        """Values that an index can store and compare: decimals and seconds as numbers, dates and the like as text."""
        types, kind = self._arrow.types, column.type
        if types.is_dictionary(kind):
            column = column.cast(kind.value_type)
        elif types.is_duration(kind):
            column = self._arrow.compute.divide(column.cast("int64").cast("float64"), PER_SECOND[kind.unit])
        elif types.is_timestamp(kind) and kind.tz:
            # Local times do not ascend where clocks change.
            column = column.cast(self._arrow.timestamp(kind.unit, "UTC")).cast("string")
        elif types.is_temporal(kind):
            column = column.cast("string")
        values: list[Any] = column.to_pylist()
        return list(map(_number, values)) if types.is_decimal(kind) else values

    def _unreadable(self, error: Exception) -> InputError:
        return InputError(f"{self.name} cannot be read ({' '.join(str(error).split())[:200]}): make or copy it again")


def _is_small_integer(types: Any, kind: Any) -> bool:
    return bool(types.is_int8(kind) or types.is_uint8(kind))


def _number(decimal: Decimal | None) -> int | float | None:
    """A decimal as a number that an index can store: a whole one exactly where 64 bits suffice."""
    if decimal is None:
        return None
    return int(decimal) if -(2**63) <= decimal < 2**63 and not decimal % 1 else float(decimal)


VectorSource = ArrayVectors | ParquetVectors
"""Vectors that may be more than memory has room for."""


def open_file(path: Path, column: str | None = None, ids: str | None = None) -> VectorSource:
    """Open one file of vectors, see `shards.open_vectors`."""
    kind = VECTOR_SUFFIXES.get(path.suffix.lower())
    if kind == "parquet":
        return ParquetVectors(path, column, ids)
    if kind == "safetensors":
        return _mapped_tensor(path, column)
    if kind != "npy":
        raise InputError(f"{path} is no file of vectors: give .npy, .safetensors or .parquet")
    try:
        return ArrayVectors(np.load(path, mmap_mode="r", allow_pickle=False), str(path))
    except InputError:
        raise
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} cannot be read ({' '.join(str(error).split())[:200]}): write it again") from error


def _mapped_tensor(path: Path, name: str | None) -> ArrayVectors:
    """Map a tensor of a safetensors file, which begins with the length of its header, and the header in JSON."""
    import safetensors  # noqa: PLC0415 - other files are read without it

    try:
        # It looks whether the file is whole.
        with safetensors.safe_open(path, framework="numpy"), path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
    except (OSError, safetensors.SafetensorError) as error:
        raise InputError(f"{path} cannot be read ({error}): make or copy it again") from error
    tensors = {key: entry for key, entry in header.items() if key != "__metadata__"}
    tables = [key for key, entry in tensors.items() if len(entry["shape"]) == 2]
    if name is None and len(tables) != 1:
        raise InputError(f"{path} has {len(tables)} tables ({', '.join(tables)}): name one by --column")
    chosen = tensors.get(tables[0] if name is None else name)
    if chosen is None or chosen["dtype"] not in SAFETENSORS_DTYPES or not prod(chosen["shape"]):
        raise InputError(
            f"{path} has no tensor {name or tables[0]!r} of {', '.join(SAFETENSORS_DTYPES)}: convert it to F32"
        )
    offset = 8 + length + chosen["data_offsets"][0]
    array = np.memmap(path, SAFETENSORS_DTYPES[chosen["dtype"]], "r", offset, tuple(chosen["shape"]))
    return ArrayVectors(array, str(path), is_bfloat16=chosen["dtype"] == "BF16")
