"""Graded relevance: metrics of images with several labels, where sharing three of them is more than sharing one.

The relevance r of an item to a query is the number of labels that the two share. As everywhere here, a metric is the
expectation over all orders of the items at one distance, from counts alone. Throughout, a group is the set of items at
one distance: n items, m of them with r > 0, whose r sum to g and whose gains 2^r - 1 sum to w, after N nearer items,
whose r sum to G; c = min(n, k - N) of its places are among the first k, and R items have r > 0 in all.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.retrieval.codes import check_count
from deephash_pipeline.retrieval.counting import GradedHistograms
from deephash_pipeline.retrieval.groups import BLOCK_QUERIES, harmonic_difference, mean_of_evaluated, ratio

GRADED_RANK = 100


@dataclass(frozen=True, eq=False)
class _Groups:
    """All groups of some queries; arrays are (queries, K + 1), but for `by_grade`.

    Attributes:
        size, positive, shared, size_before, shared_before: int64; n, m, g, N and G.
        gain: float64, w.
        by_grade: int64 (grades, queries), items of each grade at any distance.
    """

    size: NDArray[np.int64]
    positive: NDArray[np.int64]
    shared: NDArray[np.int64]
    size_before: NDArray[np.int64]
    shared_before: NDArray[np.int64]
    gain: NDArray[np.float64]
    by_grade: NDArray[np.int64]

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> "_Groups":
        grades = np.arange(len(counts))
        size, shared = counts.sum(axis=0), np.tensordot(grades, counts, axes=1)
        return cls(
            size=size,
            positive=counts[1:].sum(axis=0),
            shared=shared,
            size_before=np.cumsum(size, axis=1) - size,
            shared_before=np.cumsum(shared, axis=1) - shared,
            gain=np.tensordot(_gains(len(counts)), counts, axes=1),
            by_grade=counts.sum(axis=2),
        )

    def counted(self, k: int) -> NDArray[np.int64]:
        """c, how many places of each group are among the first k."""
        return np.clip(k - self.size_before, 0, self.size)


def ndcg_at(histograms: GradedHistograms, k: int) -> NDArray[np.float64]:
    """Normalised discounted cumulative gain of the first k items: gain 2^r - 1, discount 1 / log2(1 + place).

    DCG = sum_groups w/n sum_{i=N+1..N+c} 1/log2(1+i), divided by that of the best order of the whole database
    (Jarvelin and Kekalainen, TOIS 2002; expected over ties: McSherry and Najork, ECIR 2008).

    Returns:
        float64 (queries,) in 0..1; nan for a query that shares a label with no item. A k beyond the database means all
        of it.

    Raises:
        InputError: if k is no whole number of at least 1.

    Example:
        >>> counts = np.zeros((4, 1, 4), dtype=np.int64)
        >>> for distance, grades in enumerate([[2, 0, 1], [], [1, 0, 0, 3], [0, 2]]):
        ...     np.add.at(counts, (grades, 0, distance), 1)
        >>> ndcg_at(GradedHistograms(counts), k=3).round(7), ndcg_at(GradedHistograms(counts), k=9).round(7)
        (array([0.2733857]), array([0.6048108]))
    """
    k = min(check_count(k, "k"), histograms.distances.database_size)
    # In extended precision, where a processor has it: differences late in a large database lose no digit then.
    discounts = np.zeros(k + 1, dtype=np.longdouble)
    np.cumsum(1 / np.log2(np.arange(2, k + 2, dtype=np.longdouble)), out=discounts[1:])

    def between(start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.float64]:
        difference = discounts[np.minimum(stop, k)] - discounts[np.minimum(start, k)]
        return difference.astype(np.float64)

    def normalised(groups: _Groups) -> NDArray[np.float64]:
        discounts_of_groups = between(groups.size_before, groups.size_before + groups.size)
        gained = ratio(groups.gain, groups.size, if_empty=0.0) * discounts_of_groups
        best_first = groups.by_grade[::-1]
        stops = np.cumsum(best_first, axis=0)
        ideal = _gains(len(best_first))[::-1] @ between(stops - best_first, stops)
        return ratio(gained.sum(axis=1), ideal, if_empty=np.nan)

    return _by_query(histograms, normalised)


def acg_at(histograms: GradedHistograms, k: int) -> NDArray[np.float64]:
    """Average cumulative gain of the first k items, their mean r: (1/k) sum_groups c g/n.

    Returns:
        float64 (queries,) from 0; nan for a query that shares a label with no item. A k beyond the database means all
        of it.

    Raises:
        InputError: if k is no whole number of at least 1.

    Example:
        >>> counts = np.zeros((3, 1, 2), dtype=np.int64)
        >>> counts[2, 0, 0] = counts[0, 0, 1] = counts[1, 0, 1] = 1
        >>> acg_at(GradedHistograms(counts), k=2)
        array([1.25])
    """
    k = min(check_count(k, "k"), histograms.distances.database_size)

    def average(groups: _Groups) -> NDArray[np.float64]:
        gained = (ratio(groups.shared, groups.size, if_empty=0.0) * groups.counted(k)).sum(axis=1) / k
        return np.where(groups.positive.any(axis=1), gained, np.nan)

    return _by_query(histograms, average)


def wap_at(histograms: GradedHistograms, k: int) -> NDArray[np.float64]:
    """Weighted average precision: the mean of ACG@i over the places i <= k of items with r > 0, divided by min(R, k).

    WAP = 1/min(R, k) sum_groups sum_{t=1..c} [m G/n + g/n + (t - 1) g (m - 1)/(n (n - 1))] / (N + t), by harmonic
    numbers (Zhao et al., Deep semantic ranking based hashing, CVPR 2015). Where no r is above 1 it is the average
    precision of `average_precision_at`.

    Returns:
        float64 (queries,) from 0; nan for a query that shares a label with no item. A k beyond the database means all
        of it.

    Raises:
        InputError: if k is no whole number of at least 1.

    Example:
        >>> counts = np.zeros((3, 1, 2), dtype=np.int64)
        >>> counts[2, 0, 0] = counts[0, 0, 1] = counts[1, 0, 1] = 1
        >>> wap_at(GradedHistograms(counts), k=1)
        array([2.])
    """
    k = min(check_count(k, "k"), histograms.distances.database_size)

    def weighted(groups: _Groups) -> NDArray[np.float64]:
        counted = groups.counted(k)
        first = ratio(groups.positive * groups.shared_before + groups.shared, groups.size, if_empty=0.0)
        pairs = groups.size * (groups.size - 1)
        growth = ratio(groups.shared * (groups.positive - 1), pairs, if_empty=0.0)
        reciprocals = harmonic_difference(groups.size_before, groups.size_before + counted)
        # (t - 1)/(N + t) = 1 - (N + 1)/(N + t)
        sums = (first - growth * (groups.size_before + 1)) * reciprocals + growth * counted
        relevant = groups.positive.sum(axis=1)
        return ratio(sums.sum(axis=1), np.minimum(relevant, k), if_empty=np.nan)

    return _by_query(histograms, weighted)


def graded_metrics(histograms: GradedHistograms, k: int = GRADED_RANK) -> dict[str, float]:
    """Means of the metrics of graded relevance over the queries that share a label with an item; nan without any.

    Returns:
        ``ndcg_at_<k>``, ``acg_at_<k>`` and ``wap_at_<k>``.

    Example:
        >>> counts = np.zeros((3, 1, 2), dtype=np.int64)
        >>> counts[2, 0, 0] = counts[0, 0, 1] = counts[1, 0, 1] = 1
        >>> graded_metrics(GradedHistograms(counts))["acg_at_100"]
        1.0
    """
    evaluated = histograms.distances.relevant_items > 0
    metrics = {"ndcg": ndcg_at, "acg": acg_at, "wap": wap_at}
    return {f"{name}_at_{k}": mean_of_evaluated(of(histograms, k), evaluated) for name, of in metrics.items()}


def _gains(grades: int) -> NDArray[np.float64]:
    return np.exp2(np.arange(grades)) - 1


def _by_query(histograms: GradedHistograms, of: Callable[[_Groups], NDArray[np.float64]]) -> NDArray[np.float64]:
    """Join what `of` returns for the queries of each block."""
    counts = histograms.counts
    starts = range(0, counts.shape[1], BLOCK_QUERIES)
    return np.concatenate([of(_Groups.of(counts[:, start : start + BLOCK_QUERIES])) for start in starts])
