"""How many database items lie at each Hamming distance from a query: the one expensive step of evaluation.

Every metric of `metrics` follows from two small tables of counts, so no distance is kept and nothing is sorted: memory
grows with queries + items, never with their product, and the counts of the parts of a database add up.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError


@dataclass(frozen=True, eq=False)
class DistanceHistograms:
    """Counts of database items by Hamming distance, for every query.

    Attributes:
        all: int64 (queries, code_length + 1); `all[q, d]` items lie at distance d from query q.
        relevant: int64 of the same shape; those of them that carry the label of the query.

    Raises:
        InputError: if the two tables are no such counts, or the queries, of which there may be none, were not all
            compared with the same number of items, one at least.

    Example:
        >>> histograms = DistanceHistograms(all=np.array([[1, 2]]), relevant=np.array([[0, 1]]))
        >>> histograms.database_size, histograms.relevant_items
        (3, array([1]))
    """

    all: NDArray[np.int64]
    relevant: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name, counts in (("all", self.all), ("relevant", self.relevant)):
            if not isinstance(counts, np.ndarray) or counts.dtype != np.int64 or counts.ndim != 2:
                raise InputError(f"{name} must be an int64 array (queries, code_length + 1); use count_distances.")
        if self.all.shape != self.relevant.shape:
            raise InputError(f"relevant must have the shape of all, {self.all.shape}, got {self.relevant.shape}.")
        if not self.all.shape[1]:
            raise InputError(f"histograms of shape {self.all.shape} have no distances; use count_distances.")
        if np.any(self.relevant < 0) or np.any(self.relevant > self.all):
            raise InputError("relevant must lie between 0 and all at every distance; are the two swapped?")
        totals = self.all.sum(axis=1)
        if len(totals) and (totals.min() < 1 or totals.min() != totals.max()):
            raise InputError("all must add up to one database size for every query; count them with the same database.")

    @property
    def database_size(self) -> int:
        """Number of items that every query was compared with; InputError if there are no queries."""
        if not len(self.all):
            raise InputError("there are no queries to measure; count at least one.")
        return int(self.all[0].sum())

    @property
    def relevant_items(self) -> NDArray[np.int64]:
        """Number of items that carry the label of the query, shape (queries,)."""
        relevant_items: NDArray[np.int64] = self.relevant.sum(axis=1)
        return relevant_items

    def merge(self, other: Self) -> Self:
        """Add the counts of another part of the database, found for the same queries in the same order.

        Raises:
            InputError: if the other histograms are for another number of queries or another code length.

        Example:
            >>> shard = DistanceHistograms(all=np.array([[1, 2]]), relevant=np.array([[0, 1]]))
            >>> shard.merge(shard).all
            array([[2, 4]])
        """
        if self.all.shape != other.all.shape:
            raise InputError(
                f"histograms of shapes {self.all.shape} and {other.all.shape} cannot be merged; "
                "count both parts with the same queries and code_length."
            )
        return type(self)(self.all + other.all, self.relevant + other.relevant)


@dataclass(frozen=True, eq=False)
class GradedHistograms:
    """Counts of database items by Hamming distance and graded relevance, the number of labels shared with the query.

    Attributes:
        counts: int64 (grades, queries, code_length + 1); `counts[r, q, d]` items that share r labels with query q lie
            at distance d from it.

    Raises:
        InputError: if the table is no such counts, or the queries were not all compared with the same number of items.

    Example:
        >>> counts = np.array([[[0, 1]], [[1, 1]], [[1, 0]]])
        >>> GradedHistograms(counts).distances.relevant
        array([[2, 1]])
    """

    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        counts = self.counts
        if not isinstance(counts, np.ndarray) or counts.dtype != np.int64 or counts.ndim != 3 or not len(counts):
            raise InputError(
                "counts must be an int64 array (grades, queries, code_length + 1); use count_shared_labels."
            )
        if np.any(counts < 0):
            raise InputError("counts must not be negative; use count_shared_labels.")
        # Checks the rest.
        _ = self.distances

    @property
    def distances(self) -> DistanceHistograms:
        """The same counts with every item that shares a label alike: relevant."""
        relevant = self.counts[1:].sum(axis=0)
        return DistanceHistograms(all=self.counts[0] + relevant, relevant=relevant)

    def merge(self, other: Self) -> Self:
        """Add the counts of another part of the database, found for the same queries in the same order.

        Raises:
            InputError: if the other histograms are for another number of queries or another code length.

        Example:
            >>> shard = GradedHistograms(np.array([[[0, 1]], [[1, 1]]]))
            >>> shard.merge(shard).distances.all
            array([[2, 4]])
        """
        if self.counts.shape[1:] != other.counts.shape[1:]:
            raise InputError(
                f"histograms of shapes {self.counts.shape[1:]} and {other.counts.shape[1:]} cannot be merged; "
                "count both parts with the same queries and code_length."
            )
        more, fewer = sorted((self.counts, other.counts), key=len, reverse=True)
        merged = more.copy()
        merged[: len(fewer)] += fewer
        return type(self)(merged)
