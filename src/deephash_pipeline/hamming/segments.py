"""Segments: items of an index that follow one another, in an immutable file, or, the newest of them, in the ledger."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.answers import Ids
from deephash_pipeline.hamming.codes import Codes, group_codes
from deephash_pipeline.hamming.features import FeatureForm
from deephash_pipeline.hamming.growing import with_room
from deephash_pipeline.hamming.id_columns import IdColumn, TailIds, id_column
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
        name: name of its file; empty for the tail, the newest items, which the ledger has.
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
        return self.codes.allowed_rows()

    def removed_positions(self) -> NDArray[np.int64]:
        """Positions of the items that are removed."""
        return self.positions_of(np.setdiff1d(np.arange(self.size), self.rows(), assume_unique=True))

    def find(self, ids: Ids) -> NDArray[np.int64]:
        """The row of each id, int64, MISSING for one that is not there or is removed."""
        return self._there(self.ids.find(ids))

    def _there(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same rows, MISSING for one that is removed."""
        return np.where(self.codes.allows(rows), rows, MISSING)

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
        return self.codes.where(of_rows[: self.size] if self.offsets is None else np.take(of_rows, self.offsets))

    def without(self, positions: NDArray[np.int64]) -> "Segment":
        """The same without the items at some positions; positions of others are passed over."""
        rows = self._there(self.rows_of(positions))
        gone = rows[rows != MISSING]
        return replace(self, codes=self.codes.without(gone)) if len(gone) else self

    def whole(self) -> "Segment":
        """The same with nothing removed."""
        return replace(self, codes=self.codes.whole())

    def at_row(self, first_row: int) -> "Segment":
        """The same after so many rows of the index."""
        codes = self.codes
        return self if codes.first_row == first_row else replace(self, codes=replace(codes, first_row=first_row))

    def extended(self, added: Contents) -> "Segment":
        """The tail with other items after its own.

        What lies beyond the items of a segment in its arrays is nobody's, and is overwritten.
        """
        if not len(added.positions):
            return self
        assert isinstance(self.ids, TailIds)
        stop = self.size + len(added.positions)
        features = with_room(self.stored_features, self.size, stop)
        features[self.size : stop] = added.features
        return replace(
            self,
            codes=self.codes.extended(added.words),
            ids=self.ids.extended(added.ids),
            first_position=self.first_position if self.size else int(added.positions[0]),
            stored_features=features,
        )


def empty_tail(words: int, kind: str | None, form: FeatureForm) -> Segment:
    """The tail of an index whose items are all in files.

    Args:
        words: words of a code.
        kind: kind of id that the index has, None if it never had an item.
        form: form of its features.
    """
    ids = TailIds(np.empty(0, dtype=np.int64 if kind in (None, INTEGER) else object), {}, 0)
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
