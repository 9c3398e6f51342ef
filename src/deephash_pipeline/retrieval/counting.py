"""How many database items lie at each Hamming distance from a query: the one expensive step of evaluation.

Every metric of `metrics` follows from two small tables of counts, so no distance is kept and nothing is sorted: memory
grows with queries + items, never with their product, and the counts of the parts of a database add up.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval.codes import check_code_length, check_code_shape, check_codes, code_words
from deephash_pipeline.retrieval.kernels.compiled import in_threads
from deephash_pipeline.retrieval.kernels.histograms import BLOCK_ITEMS, BLOCK_WORDS, count_items, difference_tables
from deephash_pipeline.retrieval.kernels.sharing import count_sharing
from deephash_pipeline.retrieval.labels import check_label_pair

# Working memory is that of one shard: 2 MiB of tables at 48 bits.
SHARD_ITEMS = 8 * BLOCK_ITEMS


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
            raise InputError("counts must be int64 (grades, queries, code_length + 1); use count_shared_labels.")
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


def count_distances(
    query_codes: NDArray[np.uint8],
    query_labels: NDArray[Any],
    database_codes: NDArray[np.uint8],
    database_labels: NDArray[Any],
    code_length: int,
) -> DistanceHistograms:
    """Count, exactly and for every query, the database items and the relevant ones at each Hamming distance.

    With one label per item, those are relevant that carry the label of the query; with several, those that share a
    label with it. The result depends neither on the order of the database nor on the number of threads
    (`numba.set_num_threads`). The database may be mapped into memory (``np.load(path, mmap_mode="r")``): it is read
    once, a shard at a time.

    Args:
        query_codes: packed codes, uint8 (queries, ceil(code_length / 8)), see `pack_bits`.
        query_labels: whole numbers, (queries,); or bool, or uint8 of 0 and 1, (queries, classes), which of the labels
            an item carries.
        database_codes: packed codes, uint8 (items, ceil(code_length / 8)).
        database_labels: whole numbers, (items,); or as the labels of queries, (items, classes).
        code_length: bits per code, 1..4096.

    Raises:
        InputError: if an argument has another type or shape, or there is no query or no item.

    Example:
        >>> query, database = np.array([[0]], dtype=np.uint8), np.array([[0], [1], [3]], dtype=np.uint8)
        >>> histograms = count_distances(query, np.array([7]), database, np.array([7, 4, 7]), code_length=8)
        >>> histograms.all[0, :3], histograms.relevant[0, :3]
        (array([1, 1, 1]), array([1, 0, 1]))
    """
    if getattr(query_labels, "ndim", 1) == 2:
        return count_shared_labels(query_codes, query_labels, database_codes, database_labels, code_length).distances
    code_length = check_code_length(code_length)
    query_words = code_words(check_codes(query_codes, code_length, "query_codes"))
    check_code_shape(database_codes, code_length, "database_codes")
    query_labels, database_labels = check_label_pair(query_labels, query_codes, database_labels, database_codes)
    counts = _no_counts(2, len(query_codes), code_length)
    for shard in _shards(len(database_codes)):
        # Sorted by label, the items relevant to a query are neighbours.
        labels = np.asarray(database_labels[shard])
        order = _order_of(labels)
        in_order = labels[order]
        starts = np.searchsorted(in_order, query_labels, side="left")
        stops = np.searchsorted(in_order, query_labels, side="right")
        codes = check_codes(np.asarray(database_codes[shard])[order], code_length, "database_codes")
        tables = difference_tables(code_words(codes), code_length)
        shared = (query_words, tables, starts, stops, len(codes), code_length, counts)
        in_threads(partial(_run, count_items, shared), len(query_codes))
    return DistanceHistograms(*counts[:, :, : code_length + 1])


def count_shared_labels(
    query_codes: NDArray[np.uint8],
    query_labels: NDArray[Any],
    database_codes: NDArray[np.uint8],
    database_labels: NDArray[Any],
    code_length: int,
) -> GradedHistograms:
    """Count, exactly and for every query, the database items by Hamming distance and by the labels they share with it.

    `count_distances` is the sum over the labels shared; what is said there of order, threads and files holds here.

    Args:
        query_codes: packed codes, uint8 (queries, ceil(code_length / 8)), see `pack_bits`.
        query_labels: bool, or uint8 of 0 and 1, (queries, classes), which of the labels an item carries.
        database_codes: packed codes, uint8 (items, ceil(code_length / 8)).
        database_labels: labels of the items, as those of queries, (items, classes).
        code_length: bits per code, 1..4096.

    Raises:
        InputError: if an argument has another type or shape, or there is no query or no item.

    Example:
        >>> codes = np.array([[0b0000_0000], [0b1000_0000]], dtype=np.uint8)
        >>> labels = np.array([[1, 1, 0], [0, 1, 0]], dtype=np.uint8)
        >>> count_shared_labels(codes[:1], labels[:1], codes, labels, code_length=1).counts[:, 0].tolist()
        [[0, 0], [0, 1], [1, 0]]
    """
    code_length = check_code_length(code_length)
    query_words = code_words(check_codes(query_codes, code_length, "query_codes"))
    check_code_shape(database_codes, code_length, "database_codes")
    query_labels, database_labels = check_label_pair(query_labels, query_codes, database_labels, database_codes)
    if query_labels.ndim != 2:
        raise InputError("shared labels are counted where labels are (items, classes) of 0 and 1; use count_distances.")
    grades = min(int(np.count_nonzero(labels, axis=1).max()) for labels in (query_labels, database_labels))
    counts = _no_counts(1 + grades, len(query_words), code_length)
    carried = np.ascontiguousarray(np.nonzero(query_labels)[1])
    ends = np.cumsum(np.count_nonzero(query_labels, axis=1))
    for shard in _shards(len(database_codes)):
        codes = check_codes(np.asarray(database_codes[shard]), code_length, "database_codes")
        tables = difference_tables(code_words(codes), code_length)
        maps = np.zeros((query_labels.shape[1], len(tables) * BLOCK_WORDS), dtype=np.uint64)
        packed = np.packbits(np.asarray(database_labels[shard]).T, axis=1, bitorder="little")
        maps.view(np.uint8)[:, : packed.shape[1]] = packed
        shared = (query_words, tables, maps, carried, ends, len(codes), code_length, counts)
        in_threads(partial(_run, count_sharing, shared), len(query_words))
    counts[0] -= counts[1:].sum(axis=0)
    return GradedHistograms(counts[:, :, : code_length + 1])


def _run(kernel: Any, shared: tuple[Any, ...], first_query: int, stop_query: int) -> None:
    kernel(first_query, stop_query, *shared)


def _shards(items: int) -> Iterator[slice]:
    for first in range(0, items, SHARD_ITEMS):
        yield slice(first, first + SHARD_ITEMS)


def _no_counts(kinds: int, queries: int, code_length: int) -> NDArray[np.int64]:
    # The kernel counts eight distances at a time.
    return np.zeros((kinds, queries, (code_length // 8 + 1) * 8), dtype=np.int64)


def _order_of(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sort a shard by label."""
    lowest, highest = int(labels.min()), int(labels.max())
    # numpy sorts numbers of 16 bits by radix, several times as fast.
    keys = (labels - lowest).astype(np.uint16) if highest - lowest < 2**16 else labels
    return np.argsort(keys, kind="stable")
