"""Codes of some rows of an index, equal ones stored once, and bitmaps of the rows that may be found."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.kernels.grouping import list_rows, mark_codes, number_codes

NO_ROWS: NDArray[np.uint32] = np.empty(0, dtype=np.uint32)
EVERY_ROW: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
"""The bitmap that stands for all rows."""

WORD_ROWS = 64


@dataclass(frozen=True, eq=False)
class Codes:
    """Codes of rows that follow one another, as a search takes them.

    Attributes:
        words: distinct codes in the order of their first rows, uint64 (words, distinct or more), contiguous.
        distinct: number of codes.
        size: number of rows.
        starts: uint32 (distinct + 1,), the rows of code `c` are rows[starts[c] : starts[c + 1]]; empty if every row has
            a code of its own, in order.
        rows: uint32 (size,); empty likewise.
        code_of: uint32 (size,), the code of every row; empty likewise.
        first_row: number of the first row in the index.
        allowed: bitmap of the rows that may be found, uint64 (words,); empty if all may.

    Example:
        >>> codes = group_codes(np.array([[7, 1]], dtype=np.uint64)).where(bitmap_of(np.array([1]), size=2))
        >>> codes.allowed_count, codes.by_code
        (1, False)
    """

    words: NDArray[np.uint64]
    distinct: int
    size: int
    starts: NDArray[np.uint32] = field(default_factory=lambda: NO_ROWS)
    rows: NDArray[np.uint32] = field(default_factory=lambda: NO_ROWS)
    code_of: NDArray[np.uint32] = field(default_factory=lambda: NO_ROWS)
    first_row: int = 0
    allowed: NDArray[np.uint64] = field(default_factory=lambda: EVERY_ROW)

    def words_of(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
        """Codes of some rows, uint64 (words, rows)."""
        codes = self.code_of[rows] if len(self.starts) else rows
        return np.ascontiguousarray(self.words[:, : self.distinct][:, codes])

    def where(self, allowed: NDArray[np.uint64]) -> "Codes":
        """The same with a bitmap of the rows that may be found."""
        return replace(self, allowed=allowed)

    @property
    def by_code(self) -> bool:
        """Whether rows are found by their codes, see `kernels.nearest.Part`."""
        return len(self.code_of) > 0 and not len(self.allowed)

    @cached_property
    def allowed_count(self) -> int:
        """How many rows may be found."""
        return int(np.bitwise_count(self.allowed).sum()) if len(self.allowed) else self.size

    @cached_property
    def codes_of_use(self) -> NDArray[np.uint64]:
        """Bitmap of the codes that have a row that may be found; empty if all have."""
        if not len(self.allowed) or not len(self.starts):
            return self.allowed
        of_use = np.zeros(-(-self.distinct // WORD_ROWS), dtype=np.uint64)
        mark_codes(self.starts, self.rows, self.allowed, of_use)
        return of_use


def group_codes(words: NDArray[np.uint64]) -> Codes:
    """Group equal codes.

    Args:
        words: codes, uint64 (words, rows), contiguous; fewer than 2^31 rows.

    Example:
        >>> codes = group_codes(np.array([[7, 1, 7]], dtype=np.uint64))
        >>> codes.distinct, codes.rows
        (2, array([0, 2, 1], dtype=uint32))
    """
    rows = words.shape[1]
    code_of, first_rows = np.empty(rows, dtype=np.uint32), np.empty(rows, dtype=np.uint32)
    distinct = number_codes(words, code_of, first_rows)
    if distinct == rows:
        return Codes(words, rows, rows)
    starts, grouped = np.zeros(distinct + 1, dtype=np.uint32), np.empty(rows, dtype=np.uint32)
    list_rows(code_of, starts, grouped)
    return Codes(np.ascontiguousarray(words[:, first_rows[:distinct]]), distinct, rows, starts, grouped, code_of)


def bitmap_of(rows: NDArray[np.integer[Any]], size: int) -> NDArray[np.uint64]:
    """The bitmap of some of `size` rows: uint64 (words,), bit `r` of word `w` is row 64 w + r.

    Example:
        >>> bitmap_of(np.array([0, 3]), size=4)
        array([9], dtype=uint64)
    """
    flags = np.zeros(size, dtype=np.bool_)
    flags[rows] = True
    return bitmap_of_flags(flags)


def bitmap_of_flags(flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """The bitmap of the rows whose flags, bool (size,), are set.

    Example:
        >>> bitmap_of_flags(np.array([True, False, False, True]))
        array([9], dtype=uint64)
    """
    packed = np.packbits(flags, bitorder="little")
    bitmap = np.zeros(max(1, -(-len(flags) // WORD_ROWS)), dtype=np.uint64)
    bitmap.view(np.uint8)[: len(packed)] = packed
    return bitmap


def without_rows(bitmap: NDArray[np.uint64], rows: NDArray[np.integer[Any]], size: int) -> NDArray[np.uint64]:
    """A copy of a bitmap with some rows taken out; an empty bitmap has all of `size` rows.

    Example:
        >>> without_rows(EVERY_ROW, np.array([0]), size=4)
        array([14], dtype=uint64)
    """
    changed = bitmap.copy() if len(bitmap) else bitmap_of_flags(np.ones(size, dtype=np.bool_))
    places = np.asarray(rows, dtype=np.uint64)
    np.bitwise_and.at(changed, places >> np.uint64(6), ~(np.uint64(1) << (places & np.uint64(63))))
    return changed


def flags_in(bitmap: NDArray[np.uint64], size: int) -> NDArray[np.bool_]:
    """Undo `bitmap_of_flags`; an empty bitmap has all of `size` rows.

    Example:
        >>> flags_in(bitmap_of(np.array([0, 3]), size=4), size=4)
        array([ True, False, False,  True])
    """
    if not len(bitmap):
        return np.ones(size, dtype=np.bool_)
    return np.unpackbits(bitmap.view(np.uint8), count=size, bitorder="little").view(np.bool_)


def rows_in(bitmap: NDArray[np.uint64], size: int) -> NDArray[np.int64]:
    """The rows in a bitmap, in order, int64; an empty bitmap has all of `size` rows.

    Example:
        >>> rows_in(bitmap_of(np.array([0, 3]), size=4), size=4)
        array([0, 3])
    """
    if not len(bitmap):
        return np.arange(size)
    return np.flatnonzero(flags_in(bitmap, size))
