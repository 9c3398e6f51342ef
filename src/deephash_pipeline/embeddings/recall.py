"""How much of the exact answers a search finds, measured on rows held out, and how many candidates a recall takes."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.embeddings.coder import Coder
from deephash_pipeline.hamming.index import HammingIndex
from deephash_pipeline.hamming.kernels.least import least_of_first
from deephash_pipeline.hamming.reranking import ByFeatures, ByOutputs, Reranking

RECALL_AT = (1, 10, 100)
OVERSAMPLING = (1, 2, 3, *(step * 2**power for power in range(12) for step in (4, 5, 6, 7)))
"""Candidates for each answer that are measured: 1 to 8, then 10, 12 and so on, as far as the most candidates go."""
MOST_CANDIDATES = 12_800
UNKNOWN = 128
"""Candidates for each answer of an index of which nothing was measured."""
UNMEASURED = 10
"""Candidates for each answer, at least, where nothing was measured."""
LEAST_HELD_OUT = 50
"""With fewer rows held out nothing is measured."""
AS_GOOD = 0.001
"""Where no number of candidates reaches a recall, more of them are not worth less than this."""
SAME = 1e-6
"""Cosines that differ by less are the same: single precision, and copies that were computed twice, know no better."""
QUERIES_OF_A_MEASURE = 50
ROWS_SCORED_AT_ONCE = 8192
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
        queries: number of held-out rows, or of given queries, that were searched with.
        given: True if it was measured with queries that were given.
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
    given: bool = False
    of: Mapping[int, Mapping[int, float]]

    def expected(self, k: int, recall: float | None = None, conditions: bool = False) -> Expected:
        """The least oversampling with which k answers have a recall, or as much of it as with any that was measured.

        Numbers of answers between two that were measured take as many candidates as the more costly of both, for the
        nearest of some answers are found before the others. For others, or under conditions, nothing was measured.

        Raises:
            InputError: see `check_recall`.
        """
        target = self.target if recall is None else recall
        check_recall(target)
        counts = sorted(self.of)
        if not counts:
            return Expected(UNKNOWN, None)
        below = max((count for count in counts if count <= k), default=counts[0])
        above = min((count for count in counts if count >= k), default=counts[-1])
        found = {count: self._least(count, target) for count in (below, above)}
        is_between = counts[0] <= k <= counts[-1]
        candidates = max(count * each.oversampling for count, each in found.items())
        oversampling = -(-candidates // k) if is_between else max(each.oversampling for each in found.values())
        if conditions or not is_between:
            return Expected(max(oversampling, UNMEASURED), None)
        return Expected(oversampling, min(each.recall or 0 for each in found.values()))

    def _least(self, count: int, target: float) -> Expected:
        pairs = sorted(self.of[count].items())
        most = max(recall for _, recall in pairs)
        enough = target if most >= target else most - AS_GOOD
        return Expected(*next(pair for pair in pairs if pair[1] >= enough))


class ExactNeighbours:
    """Cosines of the nearest rows of some rows, gathered while all rows pass by.

    Args:
        rows: numbers of those that are searched with, int64 (queries,), ascending; -1 for what is no row.
        queries: the vectors of length 1, float32 (queries, width).
        count: number of neighbours to keep.

    Example:
        >>> unit = np.eye(3, dtype=np.float32)[[0, 1, 0]]
        >>> exact = ExactNeighbours(np.array([0]), unit[:1], count=1)
        >>> exact.pass_by(0, unit)
        >>> exact.least(1).tolist()
        [1.0]
    """

    def __init__(self, rows: NDArray[np.int64], queries: NDArray[np.float32], count: int) -> None:
        self.of, self.queries = rows, queries
        self._cosines = np.full((len(rows), count), NOT_THERE, dtype=np.float32)

    def pass_by(self, start: int, unit: NDArray[np.float32]) -> None:
        """Look at vectors of length 1, float32 (rows, width), the first of which is this row."""
        for first in range(0, len(unit), ROWS_SCORED_AT_ONCE):
            self._look_at(start + first, unit[first : first + ROWS_SCORED_AT_ONCE])

    def _look_at(self, start: int, unit: NDArray[np.float32]) -> None:
        cosines = self.queries @ unit.T
        own = np.flatnonzero((self.of >= max(start, 0)) & (self.of < start + len(unit)))
        cosines[own, self.of[own] - start] = NOT_THERE
        is_near = cosines > self._cosines.min(axis=1, keepdims=True)
        counts = is_near.sum(axis=1)
        # What is near to a query stands together, and is put beside what it has: as many places for each query, none
        # where an index is too small for queries.
        most = counts.max(initial=0)
        both = np.full((len(cosines), self._cosines.shape[1] + most), NOT_THERE, dtype=np.float32)
        both[:, : self._cosines.shape[1]] = self._cosines
        both[:, self._cosines.shape[1] :][np.arange(most) < counts[:, np.newaxis]] = cosines[is_near]
        self._cosines = -np.partition(-both, self._cosines.shape[1] - 1, axis=1)[:, : self._cosines.shape[1]]

    def least(self, count: int) -> NDArray[np.float32]:
        """The cosine of the last of so many nearest, float32 (queries,): any row with it is an exact answer."""
        return -np.sort(-self._cosines, axis=1)[:, :count][:, -1]


def measured_recall(
    index: HammingIndex,
    exact: ExactNeighbours,
    coder: Coder,
    target: float,
    parts: Callable[[NDArray[np.int64]], Iterator[NDArray[np.float32]]],
) -> MeasuredRecall:
    """Search an index, whose positions are the rows, with held-out rows, each without itself.

    Args:
        index: the index.
        exact: the held-out rows, and cosines of the exact answers.
        coder: what makes the codes.
        target: recall that was asked for.
        parts: function that gives the vectors of length 1 of rows, which ascend, some at a time.
    """
    queries, given = len(exact.of), bool((exact.of < 0).all())
    others = len(index) if given else len(index) - 1
    if queries < LEAST_HELD_OUT:
        return MeasuredRecall(target=target, queries=queries, items=len(index), given=given, of={})
    steps = {count: _steps(count, others) for count in RECALL_AT}
    firsts = {count: [count * step for step in steps[count]] for count in RECALL_AT}
    most = min(max(map(max, firsts.values())), others)
    # Pairs of row and query, and which of them were found, by number of answers.
    pairs: list[NDArray[np.int64]] = []
    found: dict[int, list[NDArray[np.int64]]] = {count: [] for count in RECALL_AT}
    for start in range(0, queries, QUERIES_OF_A_MEASURE):
        some = slice(start, start + QUERIES_OF_A_MEASURE)
        unit = exact.queries[some]
        rerank = reranking_of(index, coder, unit)
        rows, scores = index.candidates(coder.codes(unit), most if given else most + 1, rerank)
        if not given:
            rows, scores = _without(exact.of[some], rows, scores)
        nearest = {count: least_of_first(scores, count, firsts[count]) for count in RECALL_AT}
        is_found = np.zeros(rows.shape, dtype=np.bool_)
        for places in nearest.values():
            is_found[np.arange(len(rows))[:, np.newaxis], places] = True
        numbers = np.cumsum(is_found).reshape(rows.shape) + (sum(map(len, pairs)) - 1)
        pairs.append((rows * queries + np.arange(queries)[some, np.newaxis])[is_found])
        for count, places in nearest.items():
            found[count].append(np.take_along_axis(numbers[np.newaxis], places, axis=2))
    every = np.concatenate(pairs)
    order = np.argsort(every)
    cosines = np.empty(len(every), dtype=np.float32)
    cosines[order] = _cosines(every[order] // queries, exact.queries, every[order] % queries, parts)
    of: dict[int, dict[int, float]] = {}
    for count, of_count in found.items():
        as_near = cosines[np.concatenate(of_count, axis=1)] >= exact.least(count)[:, np.newaxis] - SAME
        of[count] = {step: round(float(near.mean()), 5) for step, near in zip(steps[count], as_near, strict=True)}
    return MeasuredRecall(target=target, queries=queries, items=len(index), given=given, of=of)


def reranking_of(
    index: HammingIndex, coder: Coder, unit: NDArray[np.float32], shortlist: int = MOST_CANDIDATES
) -> Reranking:
    """The order that candidates are brought into: by the vectors, or by the outputs where no vectors are kept.

    Args:
        index: the index.
        coder: what makes its codes.
        unit: queries of length 1, float32 (queries, width).
        shortlist: number of candidates.
    """
    return ByFeatures(unit, shortlist) if index.features else ByOutputs(coder.outputs(unit), shortlist)


def _steps(count: int, others: int) -> list[int]:
    """Candidates for each of so many answers that are measured, up to all there are."""
    steps = [step for step in OVERSAMPLING if step * count <= MOST_CANDIDATES]
    enough = next((place for place, step in enumerate(steps) if step * count >= others), len(steps))
    return steps[: enough + 1]


def _cosines(
    rows: NDArray[np.int64],
    queries: NDArray[np.float32],
    asked: NDArray[np.int64],
    parts: Callable[[NDArray[np.int64]], Iterator[NDArray[np.float32]]],
) -> NDArray[np.float32]:
    """Cosines of rows, which ascend, with a query each."""
    distinct, place = np.unique(rows, return_inverse=True)
    cosines = np.empty(len(rows), dtype=np.float32)
    first = 0
    for unit in parts(distinct):
        start, stop = np.searchsorted(place, (first, first + len(unit)))
        for low in range(start, stop, ROWS_SCORED_AT_ONCE):
            some = slice(low, min(low + ROWS_SCORED_AT_ONCE, stop))
            cosines[some] = np.einsum("ij,ij->i", queries[asked[some]], unit[place[some] - first])
        first += len(unit)
    return cosines


def _without(
    own: NDArray[np.int64], rows: NDArray[np.int64], scores: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Leave out each query's own row, or the last where that is not there."""
    is_own = rows == own[:, np.newaxis]
    is_own[~is_own.any(axis=1), -1] = True
    shape = (len(rows), rows.shape[1] - 1)
    return rows[~is_own].reshape(shape), scores[~is_own].reshape(shape)
