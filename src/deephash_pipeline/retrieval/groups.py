"""The groups of equally far items that the values of `metrics` are sums over, found once and for all of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.retrieval.harmonic import harmonic_difference
from deephash_pipeline.retrieval.histograms import DistanceHistograms
from deephash_pipeline.retrieval.ranks import ratio

# Arrays for so many queries are small enough to stay in the cache and to be given the same memory again and again. For
# 10,000 queries at once, most of the time goes into fresh pages from the operating system.
BLOCK_QUERIES = 1024


@dataclass(frozen=True, eq=False)
class RelevantGroups:
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
    def in_blocks(cls, histograms: DistanceHistograms) -> Iterator[Self]:
        """Yield the groups of all queries in their order, those of `BLOCK_QUERIES` queries at a time."""
        for start in range(0, len(histograms.all), BLOCK_QUERIES):
            block = slice(start, start + BLOCK_QUERIES)
            yield cls._of(histograms.all[block], histograms.relevant[block])

    @classmethod
    def _of(cls, all_items: NDArray[np.int64], relevant_items: NDArray[np.int64]) -> Self:
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

    def first(self, k: int) -> Self:
        """Keep the groups that hold one of the first k items; `relevant_items` still counts all."""
        kept = self.size_before < k
        return type(self)(
            query=self.query[kept],
            size=self.size[kept],
            relevant=self.relevant[kept],
            size_before=self.size_before[kept],
            relevant_before=self.relevant_before[kept],
            relevant_items=self.relevant_items,
        )

    def precision_sums(self, k: int) -> NDArray[np.float64]:
        """Expected sum, over the relevant items of each group among the first k, of the precision at their places.

        A relevant item at place t of its group has (t - 1)(r - 1)/(n - 1) relevant ones of the group before it on
        average: r/n sum_{t=1..c} [R' + 1 + (t - 1)(r - 1)/(n - 1)] / (N' + t), c places counting, by harmonic numbers.

        Args:
            k: at least the items before any of the groups, see `first`.

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
