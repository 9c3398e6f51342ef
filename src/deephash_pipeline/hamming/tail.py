"""The newest items of an index, before they become a segment."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.answers import Ids, ItemId
from deephash_pipeline.hamming.features import FeatureForm
from deephash_pipeline.hamming.ids import INTEGER, MISSING
from deephash_pipeline.hamming.parts import CodeGroups
from deephash_pipeline.hamming.segments import Contents

FIRST_CAPACITY = 64


class Tail:
    """The newest items, not yet in a segment: each with a code of its own, in the order of insertion.

    A tail only grows; `seen` of it are the items that a snapshot has. What lies beyond, others have added since.
    """

    def __init__(self, words: int, kind: str | None, form: FeatureForm) -> None:
        self.kind, self.form = kind, form
        self.ids: list[ItemId] = []
        self.row_of_id: dict[ItemId, int] = {}
        self.words = np.zeros((words, FIRST_CAPACITY), dtype=np.uint64)
        self.positions = np.zeros(FIRST_CAPACITY, dtype=np.int64)
        self.features = np.zeros((FIRST_CAPACITY, form.columns), dtype=form.dtype) if form.width else None

    def append(self, contents: Contents) -> None:
        """Add items."""
        size, added = len(self.ids), len(contents.positions)
        if size + added > self.words.shape[1]:
            # Snapshots keep the arrays that they were made of.
            capacity = 2 * (size + added)
            self.words = _grown(self.words, capacity, axis=1)
            self.positions = _grown(self.positions, capacity, axis=0)
            self.features = None if self.features is None else _grown(self.features, capacity, axis=0)
        self.words[:, size : size + added] = contents.words
        self.positions[size : size + added] = contents.positions
        if self.features is not None:
            self.features[size : size + added] = contents.features
        for row, value in enumerate(contents.ids.tolist(), start=size):
            self.row_of_id[value] = row
            self.ids.append(value)

    def seen(self) -> "SeenTail":
        """The items that there are by now."""
        return SeenTail(self, len(self.ids), self.words, self.positions, self.features)


def _grown(array: NDArray[Any], capacity: int, axis: int) -> NDArray[Any]:
    shape = list(array.shape)
    shape[axis] = capacity
    grown = np.zeros(shape, dtype=array.dtype)
    grown[tuple(slice(length) for length in array.shape)] = array
    return grown


@dataclass(frozen=True, eq=False)
class SeenTail:
    """The first items of a tail, with the methods of a segment."""

    tail: Tail
    size: int
    words: NDArray[np.uint64]
    all_positions: NDArray[np.int64]
    all_features: NDArray[Any] | None

    @property
    def groups(self) -> CodeGroups:
        """Its codes, one for each row."""
        return CodeGroups(self.words, self.size)

    @property
    def features(self) -> NDArray[Any] | None:
        """Features of its rows; None of an index without features."""
        return None if self.all_features is None else self.all_features[: self.size]

    def take(self, rows: NDArray[np.integer[Any]]) -> Ids:
        """Ids of some rows."""
        taken = np.empty(rows.size, dtype=np.int64 if self.tail.kind == INTEGER else object)
        taken[:] = [self.tail.ids[row] for row in rows.ravel().tolist()]
        return taken.reshape(rows.shape)

    def find(self, ids: Ids) -> NDArray[np.int64]:
        """The row of each id, MISSING for an id that is not there."""
        rows = np.array([self.tail.row_of_id.get(value, MISSING) for value in ids.tolist()], dtype=np.int64)
        rows[rows >= self.size] = MISSING
        return rows

    def positions_of(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Positions of some rows."""
        positions: NDArray[np.int64] = self.all_positions[rows]
        return positions

    def at_positions(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Flags of its rows, of those of all positions."""
        return np.take(flags, self.all_positions[: self.size])

    def rows_of(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows at some positions, MISSING where there is none."""
        known = self.all_positions[: self.size]
        if not self.size:
            return np.full(len(positions), MISSING, dtype=np.int64)
        rows = np.minimum(np.searchsorted(known, positions), self.size - 1)
        return np.where(known[rows] == positions, rows, MISSING)

    def contents_of(self, rows: NDArray[np.int64], with_features: bool = True) -> Contents:
        """Some of its items, rows ascending."""
        features = self.all_features[rows] if with_features and self.all_features is not None else None
        return Contents(np.ascontiguousarray(self.words[:, rows]), self.take(rows), self.all_positions[rows], features)
