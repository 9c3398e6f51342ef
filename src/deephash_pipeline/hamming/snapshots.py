"""The state of an index at one time: what a search reads while others write."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.answers import Ids
from deephash_pipeline.hamming.conditions import Tree
from deephash_pipeline.hamming.ids import INTEGER, MISSING, TextIds
from deephash_pipeline.hamming.parts import (
    EVERY_ROW,
    SearchedPart,
    bitmap_of,
    bitmap_of_flags,
    rows_in,
    without_rows,
)
from deephash_pipeline.hamming.segments import Contents, Segment
from deephash_pipeline.hamming.tail import SeenTail, Tail

CONDITIONS_KEPT = 64


@dataclass(frozen=True, eq=False)
class Source:
    """A segment or the tail, with the rows of it that are not removed.

    Attributes:
        items: the segment or tail.
        present: bitmap of the rows that are there; EVERY_ROW if none is removed.
        removed: number of items that are removed.
    """

    items: Segment | SeenTail
    present: NDArray[np.uint64] = field(default_factory=lambda: EVERY_ROW)
    removed: int = 0

    @property
    def count(self) -> int:
        """Number of items that are there."""
        return self.items.size - self.removed

    def without(self, rows: NDArray[np.int64]) -> "Source":
        """The same with some rows removed that were there."""
        present = without_rows(self.present, rows, self.items.size)
        return replace(self, present=present, removed=self.removed + len(rows))

    def grown(self, items: SeenTail) -> "Source":
        """The tail with more items."""
        if not self.removed:
            return Source(items)
        rows = np.setdiff1d(np.arange(items.size), self.removed_rows(), assume_unique=True)
        return Source(items, bitmap_of(rows, items.size), self.removed)

    def rows(self) -> NDArray[np.int64]:
        """The rows that are there."""
        return rows_in(self.present, self.items.size)

    def removed_rows(self) -> NDArray[np.int64]:
        """The rows that are not."""
        return np.setdiff1d(np.arange(self.items.size), self.rows(), assume_unique=True)

    def present_where(self, holds: NDArray[np.bool_]) -> NDArray[np.uint64]:
        """Bitmap of the rows that are there and for whose positions a condition holds, bool (positions,)."""
        bitmap = bitmap_of_flags(self.items.at_positions(holds))
        return bitmap & self.present if len(self.present) else bitmap

    def has(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each row is there; MISSING is not."""
        there: NDArray[np.bool_] = rows != MISSING
        if len(self.present):
            words = self.present[np.maximum(rows, 0) >> 6]
            there &= ((words >> (rows & 63).astype(np.uint64)) & np.uint64(1)).astype(np.bool_)
        return there


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An index at one time.

    Attributes:
        sources: segments in the order of insertion, the tail after them.
        generation: number of the ledger that changes when segments are merged.
        searched: parts to search, by condition, of the latest ones; only to be touched under the store's lock.
        columns: names of the columns of metadata once a condition has asked for them; likewise.
    """

    sources: tuple[Source, ...]
    generation: int
    searched: dict[Tree, list[SearchedPart]] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Number of items."""
        return sum(source.count for source in self.sources)

    @cached_property
    def first_rows(self) -> NDArray[np.int64]:
        """Number of the first row of every source, and of all rows, int64 (sources + 1,)."""
        return np.concatenate(([0], np.cumsum([source.items.size for source in self.sources], dtype=np.int64)))

    @property
    def _tail(self) -> Tail:
        items = self.sources[-1].items
        assert isinstance(items, SeenTail)
        return items.tail

    @property
    def words(self) -> int:
        """Words of a code."""
        return len(self._tail.words)

    def rows(self) -> NDArray[np.int64]:
        """The rows of all items, int64, in the order of insertion."""
        firsts = self.first_rows[:-1].tolist()
        return np.concatenate([first + source.rows() for source, first in zip(self.sources, firsts, strict=True)])

    @cached_property
    def parts(self) -> list[SearchedPart]:
        """What to search without a condition."""
        return self._parts(source.present for source in self.sources)

    def parts_where(self, condition: Tree, holds: NDArray[np.bool_]) -> list[SearchedPart]:
        """What to search when only items may be found for whose positions a condition holds; it is kept."""
        self.searched[condition] = self._parts(source.present_where(holds) for source in self.sources)
        if len(self.searched) > CONDITIONS_KEPT:
            del self.searched[next(iter(self.searched))]
        return self.searched[condition]

    def _parts(self, allowed: Iterable[NDArray[np.uint64]]) -> list[SearchedPart]:
        return [
            SearchedPart(source.items.groups, source.items.size, int(first), bitmap)
            for source, first, bitmap in zip(self.sources, self.first_rows[:-1], allowed, strict=True)
        ]

    def gathered(self, rows: NDArray[np.int64], get: Any, like: NDArray[Any]) -> NDArray[Any]:
        """Collect get(items, rows within) over all sources, into an array like `like` whose rows belong to `rows`."""
        firsts = self.first_rows
        only = [place for place in range(len(self.sources)) if firsts[place + 1] > firsts[place]]
        if len(only) == 1:
            return np.asarray(get(self.sources[only[0]].items, rows))
        source_of = np.searchsorted(firsts, rows, side="right") - 1
        for place in only:
            mine = source_of == place
            if mine.any():
                like[mine] = get(self.sources[place].items, rows[mine] - firsts[place])
        return like

    def ids_of(self, rows: NDArray[np.int64]) -> Ids:
        """Ids of some rows, of the same shape."""
        empty = np.empty(rows.shape, dtype=np.int64 if self._tail.kind in (None, INTEGER) else object)
        return self.gathered(rows, _ids_of, empty)

    def find(self, ids: Ids) -> NDArray[np.int64]:
        """The row of each id, int64, MISSING for an id that is not there.

        To be asked of the present snapshot, under the store's lock: a tail knows the newest row of an id alone.
        """
        found = np.full(len(ids), MISSING, dtype=np.int64)
        for source, first in zip(self.sources, self.first_rows[:-1], strict=True):
            missing = np.flatnonzero(found == MISSING)
            if len(missing) and source.count:
                column = source.items if isinstance(source.items, SeenTail) else source.items.ids
                rows = column.find(ids[missing])
                found[missing] = np.where(source.has(rows), first + rows, MISSING)
        return found

    def positions_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions of some rows."""
        empty = np.empty(rows.shape, dtype=np.int64)
        return self.gathered(rows, lambda items, within: items.positions_of(within), empty)

    def words_of(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Codes of some rows, uint64 (rows, words)."""
        empty = np.empty((len(rows), self.words), dtype=np.uint64)
        return self.gathered(rows, lambda items, within: items.groups.words_of(within).T, empty)

    def features_of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Features of some rows, float32 (rows, width)."""
        form = self._tail.form
        empty = np.empty((len(rows), form.columns), dtype=form.dtype)
        if not form.width:
            return form.real(empty)
        return form.real(self.gathered(rows, lambda items, within: items.features[within], empty))

    def contents_of(self, rows: NDArray[np.int64]) -> Contents:
        """Codes, ids, positions and features of some rows, as they are stored."""
        form = self._tail.form
        empty = np.empty((len(rows), form.columns), dtype=form.dtype)
        features = self.gathered(rows, lambda items, within: items.features[within], empty) if form.width else None
        words = np.ascontiguousarray(self.words_of(rows).T)
        return Contents(words, self.ids_of(rows), self.positions_of(rows), features)

    def largest_id(self) -> int:
        """The largest of ids that are integers, also of removed items that are still stored; -1 if there is none."""
        columns = [source.items.ids for source in self.sources if isinstance(source.items, Segment)]
        of_segments = [column.largest() for column in columns if not isinstance(column, TextIds)]
        return max([-1, *of_segments, *map(int, self._tail.ids[: self.sources[-1].items.size])])

    def without(self, positions: Iterable[int] | NDArray[np.int64]) -> "Snapshot":
        """The same without the items at some positions; positions of no item are passed over."""
        wanted = np.asarray(positions, dtype=np.int64)
        sources = []
        for source in self.sources:
            rows = source.items.rows_of(wanted)
            gone = rows[source.has(rows)]
            sources.append(source.without(gone) if len(gone) else source)
        return Snapshot(tuple(sources), self.generation)

    def with_tail(self, tail: SeenTail) -> "Snapshot":
        """The same with more items in its tail."""
        return Snapshot((*self.sources[:-1], self.sources[-1].grown(tail)), self.generation)


def _ids_of(items: Segment | SeenTail, rows: NDArray[np.int64]) -> Ids:
    return items.take(rows) if isinstance(items, SeenTail) else items.ids.take(rows)


def snapshot_of(segments: Sequence[Segment], tail: SeenTail, removed: NDArray[np.int64], generation: int) -> Snapshot:
    """The state of segments and a tail without the items at removed positions."""
    return Snapshot((*(Source(segment) for segment in segments), Source(tail)), generation).without(removed)
