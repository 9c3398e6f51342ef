"""How much of the exact answers a search finds, measured on rows held out, and how many candidates a recall takes."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.search.index import HammingIndex
from deephash_pipeline.search.reranking import ByFeatures

NEIGHBOURS = (10, 100)
OVERSAMPLING = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
QUERIES_AT_ONCE = 50
ROWS_AT_ONCE = 8192
NOT_THERE = -np.inf


class Expected(NamedTuple):
    """What a search does, and what may be expected of it.

    Attributes:
        oversampling: candidates for each answer.
        recall: share of the exact answers that it finds; None where it was not measured.
    """

    oversampling: int
    recall: float | None


def check_recall(recall: object) -> None:
    """Refuse what is no share with an InputError.

    Example:
        >>> check_recall(0.9)
    """
    if not isinstance(recall, float | int) or not 0 < recall <= 1:
        raise InputError(f"recall is {recall!r}: give a share above 0, at most 1, such as 0.99")


class MeasuredRecall(BaseModel):
    """Share of the exact answers that searches found, by number of answers and oversampling.

    Attributes:
        target: the recall that was asked for.
        queries: number of held-out rows that were searched with.
        items: number of items.
        of: recall by number of answers and by oversampling, ascending.

    Example:
        >>> measured = MeasuredRecall(target=0.9, queries=50, items=1000, of={10: {1: 0.6, 2: 0.8, 4: 0.95}})
        >>> measured.expected(10), measured.expected(10, recall=0.99)
        (Expected(oversampling=4, recall=0.95), Expected(oversampling=4, recall=0.95))
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: float
    queries: int
    items: int
    of: Mapping[int, Mapping[int, float]]

    def expected(self, k: int, recall: float | None = None) -> Expected:
        """The least oversampling with which k answers have a recall; the largest measured one where none has.

        Numbers of answers between two that were measured take the worse of both.

        Raises:
            InputError: see `check_recall`.
        """
        target = self.target if recall is None else recall
        check_recall(target)
        counts = sorted(self.of)
        below = [count for count in counts if count <= k] or counts[:1]
        above = [count for count in counts if count >= k] or counts[-1:]
        found = [self._least(count, target) for count in {*below[-1:], *above[:1]}]
        if not found:
            return Expected(max(OVERSAMPLING), None)
        return Expected(max(each.oversampling for each in found), min(each.recall or 0 for each in found))

    def _least(self, count: int, target: float) -> Expected:
        pairs = sorted(self.of[count].items())
        return Expected(*next((pair for pair in pairs if pair[1] >= target), pairs[-1]))


class ExactNeighbours:
    """The nearest rows of some rows by cosine, gathered while all rows pass by.

    Args:
        rows: numbers of those that are searched with, int64 (queries,), ascending.
        queries: the vectors of length 1, float32 (queries, width).
        count: number of neighbours to keep.

    Example:
        >>> unit = np.eye(3, dtype=np.float32)[[0, 1, 0]]
        >>> exact = ExactNeighbours(np.array([0]), unit[:1], count=1)
        >>> exact.pass_by(0, unit)
        >>> exact.rows.tolist()
        [[2]]
    """

    def __init__(self, rows: NDArray[np.int64], queries: NDArray[np.float32], count: int) -> None:
        self.of, self.queries = rows, queries
        self.rows = np.full((len(rows), count), -1, dtype=np.int64)
        self._cosines = np.full((len(rows), count), NOT_THERE, dtype=np.float32)
        self._contents: list[NDArray[np.int64]] = []

    def pass_by(self, start: int, unit: NDArray[np.float32]) -> None:
        """Look at vectors of length 1, float32 (rows, width), the first of which is this row; all pass in order."""
        for first in range(0, len(unit), ROWS_AT_ONCE):
            self._look_at(start + first, unit[first : first + ROWS_AT_ONCE])

    def _look_at(self, start: int, unit: NDArray[np.float32]) -> None:
        self._contents.append(np.fromiter((hash(row.tobytes()) for row in unit), np.int64, len(unit)))
        cosines = self.queries @ unit.T
        own = np.flatnonzero((self.of >= start) & (self.of < start + len(unit)))
        cosines[own, self.of[own] - start] = NOT_THERE
        keep = self.rows.shape[1]
        near = np.flatnonzero((cosines > self._cosines.min(axis=1, keepdims=True)).any(axis=0))
        if not len(near):
            return
        all_cosines = np.concatenate([self._cosines, cosines[:, near]], axis=1)
        numbers = start + near
        best = np.argpartition(-all_cosines, keep - 1, axis=1)[:, :keep]
        self._cosines = np.take_along_axis(all_cosines, best, axis=1)
        new = numbers[np.maximum(best - keep, 0)]
        self.rows = np.where(best < keep, np.take_along_axis(self.rows, np.minimum(best, keep - 1), axis=1), new)

    def nearest(self, count: int) -> NDArray[np.int64]:
        """The rows of the nearest, int64 (queries, count)."""
        order = np.argsort(-self._cosines, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(self.rows, order, axis=1)

    def vectors(self) -> NDArray[np.int64]:
        """A number of the vector of each row: copies have one number, as any of them is as good an answer."""
        return np.unique(np.concatenate(self._contents), return_inverse=True)[1]


def measured_recall(
    index: HammingIndex, exact: ExactNeighbours, codes: NDArray[np.uint8], target: float
) -> MeasuredRecall:
    """Search an index, whose positions are the rows, with the codes of held-out rows, each without itself."""
    others = len(index) - 1
    counts = [count for count in NEIGHBOURS if count <= others] if len(exact.of) else []
    steps = OVERSAMPLING if index.features else OVERSAMPLING[:1]
    vector_of = exact.vectors()
    truth = {count: vector_of[exact.nearest(count)] for count in counts}
    sums = {count: dict.fromkeys(steps, 0) for count in counts}
    for start in range(0, len(codes) if counts else 0, QUERIES_AT_ONCE):
        some = slice(start, start + QUERIES_AT_ONCE)
        rerank = ByFeatures(exact.queries[some]) if index.features else None
        rows, scores = index.candidates(codes[some], min(steps[-1] * counts[-1], others) + 1, rerank)
        rows, scores = _without(exact.of[some], rows, scores)
        for count in counts:
            for step in steps:
                order = np.argsort(scores[:, : step * count], axis=1, kind="stable")[:, :count]
                found = vector_of[np.take_along_axis(rows, order, axis=1)]
                sums[count][step] += sum(map(_shared, found, truth[count][some]))
    of = {
        count: {step: round(found / (count * len(codes)), 5) for step, found in by_step.items()}
        for count, by_step in sums.items()
    }
    return MeasuredRecall(target=target, queries=len(codes), items=len(index), of=of)


def _shared(found: NDArray[np.int64], truth: NDArray[np.int64]) -> int:
    return (Counter(found.tolist()) & Counter(truth.tolist())).total()


def _without(
    own: NDArray[np.int64], rows: NDArray[np.int64], scores: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Leave out each query's own row, or the last where that is not there."""
    is_own = rows == own[:, np.newaxis]
    is_own[~is_own.any(axis=1), -1] = True
    shape = (len(rows), rows.shape[1] - 1)
    return rows[~is_own].reshape(shape), scores[~is_own].reshape(shape)
