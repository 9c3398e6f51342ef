"""The state of an index at one time: what a search reads while others write."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.answers import Ids
from deephash_pipeline.hamming.codes import Codes
from deephash_pipeline.hamming.conditions import Tree
from deephash_pipeline.hamming.features import FeatureForm
from deephash_pipeline.hamming.id_columns import TextIds
from deephash_pipeline.hamming.ids import MISSING
from deephash_pipeline.hamming.segments import Contents, Segment

CONDITIONS_KEPT = 64


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An index at one time.

    Attributes:
        segments: segments in the order of insertion, the tail after them.
        generation: number of the ledger that changes when segments are merged.
        form: form of the features.
        searched: codes to search, by condition, of the latest ones; only to be touched under the store's lock.
        columns: names of the columns of metadata once a condition has asked for them; likewise.
    """

    segments: tuple[Segment, ...]
    generation: int
    form: FeatureForm
    searched: dict[Tree, list[Codes]] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, segments: Iterable[Segment], generation: int, form: FeatureForm) -> "Snapshot":
        """The state of an index that has these segments."""
        placed, first_row = [], 0
        for segment in segments:
            placed.append(segment.at_row(first_row))
            first_row += segment.size
        return cls(tuple(placed), generation, form)

    @property
    def tail(self) -> Segment:
        """The newest items, which the ledger has; there may be none."""
        return self.segments[-1]

    @property
    def words(self) -> int:
        """Words of a code."""
        return len(self.tail.codes.words)

    @cached_property
    def _filled(self) -> list[Segment]:
        return [segment for segment in self.segments if segment.size]

    @cached_property
    def codes(self) -> list[Codes]:
        """What to search without a condition."""
        return [segment.codes for segment in self.segments]

    def codes_where(self, condition: Tree, holds: NDArray[np.bool_]) -> list[Codes]:
        """What to search when only items may be found for whose positions a condition holds; it is kept."""
        self.searched[condition] = [segment.where(holds) for segment in self.segments]
        if len(self.searched) > CONDITIONS_KEPT:
            del self.searched[next(iter(self.searched))]
        return self.searched[condition]

    @property
    def count(self) -> int:
        """Number of items."""
        return sum(codes.allowed_count for codes in self.codes)

    def rows(self) -> NDArray[np.int64]:
        """The rows of all items, int64, in the order of insertion."""
        return np.concatenate([segment.codes.first_row + segment.rows() for segment in self.segments])

    def gathered(self, rows: NDArray[np.int64], get: Callable[[Segment, NDArray[np.int64]], Any]) -> Any:
        """Collect get(segment, rows within) over all segments: an array that has the shape of `rows`, or begins so."""
        filled = self._filled
        if not rows.size or len(filled) < 2:
            return get((filled or self.segments)[-1], rows)
        found: Any = None
        segment_of = np.searchsorted([segment.codes.first_row for segment in filled], rows, side="right") - 1
        for place, segment in enumerate(filled):
            mine = segment_of == place
            if mine.any():
                of_segment = get(segment, rows[mine] - segment.codes.first_row)
                if found is None:
                    found = np.empty((*rows.shape, *of_segment.shape[1:]), dtype=of_segment.dtype)
                found[mine] = of_segment
        return found

    def ids_of(self, rows: NDArray[np.int64]) -> Ids:
        """Ids of some rows, of the same shape."""
        ids: Ids = self.gathered(rows, lambda segment, within: segment.ids.take(within))
        return ids

    def positions_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions of some rows."""
        positions: NDArray[np.int64] = self.gathered(rows, Segment.positions_of)
        return positions

    def words_of(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Codes of some rows, uint64 (rows, words)."""
        words: NDArray[np.uint64] = self.gathered(rows, lambda segment, within: segment.codes.words_of(within).T)
        return words

    def features_of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Features of some rows, float32 (rows, width)."""
        return self.form.real(self.gathered(rows, lambda segment, within: segment.features[within]))

    def contents_of(self, rows: NDArray[np.int64]) -> Contents:
        """Codes, ids, positions and features of some rows, as they are stored."""
        features = self.gathered(rows, lambda segment, within: segment.features[within])
        words = np.ascontiguousarray(self.words_of(rows).T)
        return Contents(words, self.ids_of(rows), self.positions_of(rows), features)

    def find(self, ids: Ids) -> NDArray[np.int64]:
        """The row of each id, int64, MISSING for an id that is not there.

        To be asked of the present snapshot, under the store's lock: a tail knows the newest row of an id alone.
        """
        found = np.full(len(ids), MISSING, dtype=np.int64)
        for segment in self.segments:
            missing = np.flatnonzero(found == MISSING)
            if len(missing) and segment.codes.allowed_count:
                rows = segment.find(ids[missing])
                found[missing] = np.where(rows == MISSING, MISSING, segment.codes.first_row + rows)
        return found

    def largest_id(self) -> int:
        """The largest of ids that are integers, also of removed items that are still stored; -1 if there is none."""
        columns = [segment.ids for segment in self.segments if segment.size]
        return max([-1, *(column.largest() for column in columns if not isinstance(column, TextIds))])

    def without(self, positions: NDArray[np.int64]) -> "Snapshot":
        """The same without the items at some positions; positions of no item are passed over."""
        if not len(positions):
            return self
        return Snapshot(tuple(segment.without(positions) for segment in self.segments), self.generation, self.form)

    def extended(self, added: Contents) -> "Snapshot":
        """The same with more items in its tail."""
        return Snapshot((*self.segments[:-1], self.tail.extended(added)), self.generation, self.form)
