"""The groups of equally far items that the values of `metrics` are sums over, found once and for all of them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.retrieval.counting import DistanceHistograms

# Arrays for so many queries are small enough to stay in the cache and to be given the same memory again and again. For
# 10,000 queries at once, most of the time goes into fresh pages from the operating system.
BLOCK_QUERIES = 1024
# From here on three terms of the expansion are accurate to the last digit; the numbers before are summed one by one.
TABULATED = 64
_TERMS = np.arange(1, TABULATED + 1)
_STARTS = np.arange(TABULATED + 1)[:, None]
# [a, b] = 1/(a + 1) + ... + 1/b
_SHORT_SUMS = np.zeros((TABULATED + 1, TABULATED + 1))
_SHORT_SUMS[:, 1:] = np.cumsum(np.where(_STARTS < _TERMS, 1 / _TERMS, 0.0), axis=1)


class RelevantGroups(NamedTuple):
    """The groups of some queries that hold relevant items, one query after another; the others add nothing to a sum.

    A group is the set of items at one distance from a query. Good codes leave relevant items in few of the groups.

    Attributes:
        query: int64 (groups,), whose group it is: a row of `relevant_items`; ascending.
        size: int64 (groups,), n: the items of the group.
        relevant: int64 (groups,), r: those of them that are relevant, one at least.
        size_before: int64 (groups,), N': the items that are nearer to the query.
        relevant_before: int64 (groups,), R': those of them that are relevant.
        relevant_items: int64 (queries,), R: the relevant items of every query, at any distance.

    Example:
        >>> histograms = DistanceHistograms(all=np.array([[1, 2, 3]]), relevant=np.array([[0, 1, 2]]))
        >>> [groups] = RelevantGroups.in_blocks(histograms)
        >>> groups.size, groups.size_before, groups.relevant_before
        (array([2, 3]), array([1, 3]), array([0, 1]))
    """

    query: NDArray[np.int64]
    size: NDArray[np.int64]
    relevant: NDArray[np.int64]
    size_before: NDArray[np.int64]
    relevant_before: NDArray[np.int64]
    relevant_items: NDArray[np.int64]

    @classmethod
    def in_blocks(cls, histograms: DistanceHistograms) -> Iterator["RelevantGroups"]:
        """Yield the groups of all queries in their order, those of `BLOCK_QUERIES` queries at a time."""
        for start in range(0, len(histograms.all), BLOCK_QUERIES):
            block = slice(start, start + BLOCK_QUERIES)
            yield cls._of(histograms.all[block], histograms.relevant[block])

    @classmethod
    def _of(cls, all_items: NDArray[np.int64], relevant_items: NDArray[np.int64]) -> "RelevantGroups":
        groups = np.flatnonzero(relevant_items)
        size, relevant = all_items.ravel()[groups], relevant_items.ravel()[groups]
        return cls(
            query=groups // relevant_items.shape[1],
            size=size,
            relevant=relevant,
            size_before=np.cumsum(all_items, axis=1).ravel()[groups] - size,
            relevant_before=np.cumsum(relevant_items, axis=1).ravel()[groups] - relevant,
            relevant_items=relevant_items.sum(axis=1),
        )

    def first(self, k: int) -> "RelevantGroups":
        """Keep the groups that hold one of the first k items; `relevant_items` still counts all."""
        kept = self.size_before < k
        of_groups = {name: values[kept] for name, values in self._asdict().items() if name != "relevant_items"}
        return self._replace(**of_groups)

    def precision_sums(self, k: int) -> NDArray[np.float64]:
        """Expected sum, over the relevant items of each group among the first k, of the precision at their places.

        A relevant item at place t of its group has (t - 1)(r - 1)/(n - 1) relevant ones of the group before it on
        average: r/n sum_{t=1..c} [R' + 1 + (t - 1)(r - 1)/(n - 1)] / (N' + t), c places counting, by harmonic numbers.

        Args:
            k: number of first places, at least the items before any of the groups, see `first`.

        Returns:
            float64 (groups,).
        """
        counted = np.minimum(self.size, k - self.size_before)
        growth = ratio(self.relevant - 1, self.size - 1, if_empty=0.0)
        reciprocals = harmonic_difference(self.size_before, self.size_before + counted)
        if_relevant = (self.relevant_before + 1 - growth * (self.size_before + 1)) * reciprocals + growth * counted
        sums: NDArray[np.float64] = self.relevant / self.size * if_relevant
        return sums

    def sum_by_query(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up values (groups,) query by query, float64 (queries,)."""
        sums = np.zeros(len(self.relevant_items))
        np.add.at(sums, self.query, values)
        return sums


def harmonic_difference(start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum of 1/t over t = start + 1 .. stop, elementwise for 0 <= start <= stop, relative error about 1e-15.

    Subtracting two entries of a table loses digits where the difference is small against H(n). In the expansion of H(n)
    by 1/(n + 1/2) the leading term of a difference is the logarithm of one ratio, which loses none:

    H(n) = gamma + log(x) + 1/(24 x^2) - 7/(960 x^4) + 31/(8064 x^6) - ... with x = n + 1/2, the series of the
    digamma function at half-integers.

    Returns:
        float64 of the shape of the arguments.

    Example:
        >>> harmonic_difference(np.array([0, 1]), np.array([2, 4])).round(4)
        array([1.5   , 1.0833])
    """
    short = _SHORT_SUMS[np.minimum(start, TABULATED), np.minimum(stop, TABULATED)]
    low = np.maximum(start, TABULATED) + 0.5
    high = np.maximum(stop, TABULATED) + 0.5
    difference: NDArray[np.float64] = short + np.log1p((high - low) / low) + (_corrections(high) - _corrections(low))
    return difference


def _corrections(x: NDArray[np.float64]) -> NDArray[np.float64]:
    square = 1 / (x * x)
    corrections: NDArray[np.float64] = square * (1 / 24 - square * (7 / 960 - square * (31 / 8064)))
    return corrections


def mean_of_evaluated(values: NDArray[np.float64] | NDArray[np.bool_], evaluated: NDArray[np.bool_]) -> float:
    """Mean over the queries marked in `evaluated`, bool (queries,); nan if there are none.

    Example:
        >>> mean_of_evaluated(np.array([0.5, np.nan, 1.0]), np.array([True, False, True]))
        0.75
    """
    return float(values[evaluated].mean()) if evaluated.any() else float("nan")


def ratio(counts: NDArray[Any], total: NDArray[Any], if_empty: float) -> NDArray[np.float64]:
    """Divide elementwise; where the total is not positive the ratio is `if_empty`.

    Example:
        >>> ratio(np.array([1, 2]), np.array([4, 0]), if_empty=0.0)
        array([0.25, 0.  ])
    """
    quotient: NDArray[np.float64] = np.full(np.broadcast_shapes(counts.shape, total.shape), if_empty)
    np.divide(counts, total, out=quotient, where=total > 0)
    return quotient
