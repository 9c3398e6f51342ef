"""Codes of some rows of an index, equal ones stored once, and which of the rows may be found."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.growing import with_room
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
        >>> codes = group_codes(np.array([[7, 1, 7]], dtype=np.uint64)).without(np.array([0]))
        >>> codes.distinct, codes.allowed_count, codes.allowed_rows(), codes.allows(np.array([0, 1]))
        (2, 2, array([1, 2]), array([False,  True]))
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

    def whole(self) -> "Codes":
        """The same, and all rows may be found."""
        return replace(self, allowed=EVERY_ROW)

    def where(self, flags: NDArray[np.bool_]) -> "Codes":
        """The same, and only rows may be found whose flags, bool (size,), are set."""
        bitmap = bitmap_of(flags)
        return replace(self, allowed=bitmap & self.allowed if len(self.allowed) else bitmap)

    def without(self, rows: NDArray[np.integer[Any]]) -> "Codes":
        """The same, and some rows may not be found."""
        changed = self.allowed.copy() if len(self.allowed) else bitmap_of(self._flags())
        places = np.asarray(rows, dtype=np.uint64)
        np.bitwise_and.at(changed, places >> np.uint64(6), ~(np.uint64(1) << (places & np.uint64(63))))
        return replace(self, allowed=changed)

    def extended(self, added: NDArray[np.uint64]) -> "Codes":
        """These and other codes after them, uint64 (words, rows), where every row has a code of its own."""
        stop = self.size + added.shape[1]
        words = with_room(self.words, self.size, stop, axis=1)
        words[:, self.size : stop] = added
        more = Codes(words, stop, stop, first_row=self.first_row)
        if not len(self.allowed):
            return more
        return more.where(np.pad(self._flags(), (0, added.shape[1]), constant_values=True))

    def allows(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each of some rows may be found."""
        if not len(self.allowed):
            return np.ones(len(rows), dtype=np.bool_)
        words = self.allowed[rows >> 6] >> (rows & 63).astype(np.uint64)
        return np.asarray(words & np.uint64(1), dtype=np.bool_)

    def allowed_rows(self) -> NDArray[np.int64]:
        """The rows that may be found, in order."""
        return np.flatnonzero(self._flags()) if len(self.allowed) else np.arange(self.size)

    def _flags(self) -> NDArray[np.bool_]:
        if not len(self.allowed):
            return np.ones(self.size, dtype=np.bool_)
        return np.unpackbits(self.allowed.view(np.uint8), count=self.size, bitorder="little").view(np.bool_)

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


def bitmap_of(flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """The bitmap of rows whose flags, bool (size,), are set: uint64 (words,), bit `r` of word `w` is row 64 w + r.

    Example:
        >>> bitmap_of(np.array([True, False, False, True]))
        array([9], dtype=uint64)
    """
    packed = np.packbits(flags, bitorder="little")
    bitmap = np.zeros(max(1, -(-len(flags) // WORD_ROWS)), dtype=np.uint64)
    bitmap.view(np.uint8)[: len(packed)] = packed
    return bitmap
