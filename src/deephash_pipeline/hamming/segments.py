"""Segments: items of an index that follow one another, in immutable files, and the newest of them in the ledger."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.answers import Ids
from deephash_pipeline.hamming.codes import (
    EVERY_ROW,
    Codes,
    bitmap_of_flags,
    flags_in,
    group_codes,
    rows_in,
    without_rows,
)
from deephash_pipeline.hamming.features import FeatureForm
from deephash_pipeline.hamming.id_columns import IdColumn, NewestIds, id_column, with_room
from deephash_pipeline.hamming.ids import INTEGER, MISSING

# Up to so many positions are found by halving: numpy would first convert all there are to the type of those.
FEW = 64


class Contents(NamedTuple):
    """Items in the order of their insertion.

    Attributes:
        words: codes, uint64 (words, items).
        ids: int64 (items,) or object holding `str`.
        positions: int64 (items,), ascending: the item's number in the order of insertion, never used twice.
        features: features, as their `FeatureForm` stores them, (items, columns).
    """

    words: NDArray[np.uint64]
    ids: Ids
    positions: NDArray[np.int64]
    features: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Segment:
    """Items that follow one another, ready to be searched, some of them removed.

    Attributes:
        codes: codes of the items; the bitmap of those that are not removed is with them.
        ids: ids of the items.
        first_position: position of the first item.
        offsets: positions of the items relative to that, unsigned (items,); None if they are consecutive.
        stored_features: features, see `Contents`, of the items or of more; mapped into memory where they are in a file.
        name: name of its file; empty for the newest items, which the ledger has.
        digest: digest of the file's bytes, hexadecimal.
    """

    codes: Codes
    ids: IdColumn
    first_position: int
    offsets: NDArray[Any] | None
    stored_features: NDArray[Any]
    name: str = ""
    digest: str = ""

    @property
    def size(self) -> int:
        """Number of items, with those that are removed."""
        return self.codes.size

    @property
    def removed(self) -> int:
        """Number of items that are removed."""
        return self.size - self.codes.allowed_count

    @property
    def features(self) -> NDArray[Any]:
        """Features of its items."""
        return self.stored_features[: self.size]

    def rows(self) -> NDArray[np.int64]:
        """The rows that are not removed."""
        return rows_in(self.codes.allowed, self.size)

    def removed_positions(self) -> NDArray[np.int64]:
        """Positions of the items that are removed."""
        return self.positions_of(np.setdiff1d(np.arange(self.size), self.rows(), assume_unique=True))

    def has(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each row is there and not removed; MISSING is not."""
        there: NDArray[np.bool_] = rows != MISSING
        if len(self.codes.allowed):
            words = self.codes.allowed[np.maximum(rows, 0) >> 6]
            there &= ((words >> (rows & 63).astype(np.uint64)) & np.uint64(1)).astype(np.bool_)
        return there

    def find(self, ids: Ids) -> NDArray[np.int64]:
        """The row of each id, int64, MISSING for one that is not there or is removed."""
        rows = self.ids.find(ids)
        return np.where(self.has(rows), rows, MISSING)

    def positions_of(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Positions of some rows."""
        offsets = rows if self.offsets is None else self.offsets[rows]
        return self.first_position + offsets.astype(np.int64)

    def rows_of(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows at some positions, MISSING where there is none."""
        wanted = np.asarray(positions, dtype=np.int64) - self.first_position
        if self.offsets is None:
            return np.where((wanted >= 0) & (wanted < self.size), wanted, MISSING)
        if len(wanted) <= FEW:
            places = np.array([bisect_left(self.offsets, value) for value in wanted.tolist()], dtype=np.int64)
        else:
            places = np.searchsorted(self.offsets, wanted)
        rows = np.minimum(places, self.size - 1)
        return np.where(self.offsets[rows] == wanted, rows, MISSING)

    def contents_of(self, rows: NDArray[np.int64], with_features: bool = True) -> Contents:
        """Some of its items, rows ascending."""
        features = self.features[rows] if with_features else self.features[: len(rows), :0]
        return Contents(self.codes.words_of(rows), self.ids.take(rows), self.positions_of(rows), features)

    def where(self, holds: NDArray[np.bool_]) -> Codes:
        """Its codes, of which only those may be found for whose positions a condition holds, bool (positions,)."""
        of_rows = holds[self.first_position :]
        flags = of_rows[: self.size] if self.offsets is None else np.take(of_rows, self.offsets)
        bitmap, there = bitmap_of_flags(flags), self.codes.allowed
        return self.codes.where(bitmap & there if len(there) else bitmap)

    def without(self, positions: NDArray[np.int64]) -> "Segment":
        """The same without the items at some positions; positions of others are passed over."""
        rows = self.rows_of(positions)
        gone = rows[self.has(rows)]
        if not len(gone):
            return self
        return replace(self, codes=self.codes.where(without_rows(self.codes.allowed, gone, self.size)))

    def whole(self) -> "Segment":
        """The same with nothing removed."""
        return replace(self, codes=self.codes.where(EVERY_ROW))

    def at_row(self, first_row: int) -> "Segment":
        """The same after so many rows of the index."""
        codes = self.codes
        return self if codes.first_row == first_row else replace(self, codes=replace(codes, first_row=first_row))

    def extended(self, added: Contents) -> "Segment":
        """The newest items, and those that have been added after them.

        What lies beyond the items of a segment in its arrays is nobody's, and is overwritten.
        """
        if not len(added.positions):
            return self
        assert isinstance(self.ids, NewestIds)
        codes, stop = self.codes, self.size + len(added.positions)
        words = with_room(codes.words, self.size, stop, axis=1)
        words[:, self.size : stop] = added.words
        features = with_room(self.stored_features, self.size, stop)
        features[self.size : stop] = added.features
        there = EVERY_ROW
        if self.removed:
            before = flags_in(codes.allowed, self.size)
            there = bitmap_of_flags(np.concatenate([before, np.ones(stop - self.size, dtype=np.bool_)]))
        return replace(
            self,
            codes=Codes(words, stop, stop, first_row=codes.first_row, allowed=there),
            ids=self.ids.extended(added.ids),
            first_position=self.first_position if self.size else int(added.positions[0]),
            stored_features=features,
        )


def no_items(words: int, kind: str | None, form: FeatureForm) -> Segment:
    """The newest items of an index where there are none yet.

    Args:
        words: words of a code.
        kind: kind of id that the index has, None if it never had an item.
        form: form of its features.
    """
    ids = NewestIds(np.empty(0, dtype=np.int64 if kind in (None, INTEGER) else object), {}, 0)
    return Segment(Codes(np.empty((words, 0), dtype=np.uint64), 0, 0), ids, 0, None, form.no_rows())


def segment_of(contents: Iterable[Contents], name: str) -> Segment:
    """Make a segment, in memory, of at least one item, given in one or several pieces."""
    words, ids, positions, features = zip(*contents, strict=True)
    codes = group_codes(np.concatenate(words, axis=1))
    every = np.concatenate(positions)
    first, last = int(every[0]), int(every[-1])
    offsets: NDArray[Any] | None = None
    if last - first != len(every) - 1:
        offsets = (every - first).astype(np.uint32 if last - first < 2**32 else np.int64)
    return Segment(codes, id_column(np.concatenate(ids)), first, offsets, np.concatenate(features), name)
