"""How many database items lie at each Hamming distance from a query: the one expensive step of evaluation.

Every figure of `metrics` follows from two small tables of counts, so no distance is kept and nothing is sorted: memory
grows with queries + items, never with their product, and the counts of the parts of a database add up.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from deephash_pipeline.errors import InputError
from deephash_pipeline.retrieval.codes import check_code_length, check_codes, code_words
from deephash_pipeline.retrieval.compiled import ONE_CALLER, popcount

# Distances are held for so many items at a time: 4 KiB of uint16, which stay in the first-level cache.
BLOCK_ITEMS = 2048


@dataclass(frozen=True, eq=False)
class DistanceHistograms:
    """Counts of database items by Hamming distance, for every query.

    Attributes:
        all: int64 (queries, code_length + 1); `all[q, d]` items lie at distance d from query q.
        relevant: int64 of the same shape; those of them that carry the label of the query.

    Raises:
        InputError: if the two tables are no such counts, or the queries were not all compared with the same number of
            items, one at least.
    """

    all: NDArray[np.int64]
    relevant: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name, counts in (("all", self.all), ("relevant", self.relevant)):
            if not isinstance(counts, np.ndarray) or counts.dtype != np.int64 or counts.ndim != 2:
                raise InputError(f"{name} must be an int64 array (queries, code_length + 1); use count_distances.")
        if self.all.shape != self.relevant.shape:
            raise InputError(f"relevant must have the shape of all, {self.all.shape}, got {self.relevant.shape}.")
        if not self.all.size:
            raise InputError(f"histograms of shape {self.all.shape} hold nothing; count at least one query.")
        if np.any(self.relevant < 0) or np.any(self.relevant > self.all):
            raise InputError("relevant must lie between 0 and all at every distance; are the two swapped?")
        totals = self.all.sum(axis=1)
        if totals.min() < 1 or totals.min() != totals.max():
            raise InputError("all must add up to one database size for every query; count them with the same database.")

    @property
    def database_size(self) -> int:
        """Number of items that every query was compared with."""
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
        """
        if self.all.shape != other.all.shape:
            raise InputError(
                f"histograms of shapes {self.all.shape} and {other.all.shape} cannot be merged; "
                "count both parts with the same queries and code_length."
            )
        return type(self)(self.all + other.all, self.relevant + other.relevant)


def count_distances(
    query_codes: NDArray[np.uint8],
    query_labels: NDArray[np.integer[Any]],
    database_codes: NDArray[np.uint8],
    database_labels: NDArray[np.integer[Any]],
    code_length: int,
) -> DistanceHistograms:
    """Count, exactly and for every query, the database items and the relevant ones at each Hamming distance.

    An item is relevant if its label equals that of the query. The result depends neither on the order of the database
    nor on the number of threads (`numba.set_num_threads`).

    Args:
        query_codes: packed codes, uint8 (queries, ceil(code_length / 8)), see `pack_bits`.
        query_labels: whole numbers, (queries,).
        database_codes: packed codes, uint8 (items, ceil(code_length / 8)).
        database_labels: whole numbers, (items,).
        code_length: bits per code, 1..256.

    Raises:
        InputError: if an argument has another type or shape, or there is no query or no item.
    """
    code_length = check_code_length(code_length)
    check_codes(query_codes, code_length, "query_codes")
    check_codes(database_codes, code_length, "database_codes")
    query_classes = check_labels(query_labels, "query_labels", len(query_codes))
    database_classes = check_labels(database_labels, "database_labels", len(database_codes))

    by_class = np.argsort(database_classes, kind="stable")
    sorted_classes = database_classes[by_class]
    counts = np.zeros((2, len(query_codes), code_length + 1), dtype=np.int64)
    with ONE_CALLER:
        _count_by_distance(
            code_words(query_codes),
            np.ascontiguousarray(code_words(database_codes[by_class]).T),
            np.searchsorted(sorted_classes, query_classes, side="left"),
            np.searchsorted(sorted_classes, query_classes, side="right"),
            counts,
        )
    return DistanceHistograms(all=counts[0], relevant=counts[1])


def check_labels(labels: NDArray[np.integer[Any]], name: str, expected: int | None = None) -> NDArray[np.int64]:
    """Return labels as int64 of shape (n,) once they are known to be one whole number per item.

    Two unsigned 64-bit labels that differ still differ as int64, whereas numpy compares uint64 with int64 as floats.

    Raises:
        InputError: if `labels` is not a one-dimensional array of integers, is empty, or has not `expected` entries.
    """
    if not isinstance(labels, np.ndarray) or labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise InputError(f"{name} must be a one-dimensional integer array; give one class number per item.")
    if expected is not None and len(labels) != expected:
        raise InputError(f"{name} has {len(labels)} entries for {expected} codes; give one class number per code.")
    if not len(labels):
        raise InputError(f"{name} is empty; give at least one item.")
    return labels.astype(np.int64, copy=False)


@njit(cache=True, nogil=True)
def _add_slice(
    query: NDArray[np.uint64], words: NDArray[np.uint64], start: np.int64 | int, stop: int, counts: NDArray[np.int64]
) -> None:
    """Add to counts (K + 1,) the distances from a query (words,) to the items start..stop of a database (words, n)."""
    distances = np.empty(BLOCK_ITEMS, dtype=np.uint16)
    quadruples = distances.view(np.uint64)
    lowest = np.uint64(0xFFFF)
    # Neighbouring items are often equally far, and an increment has to wait for the one before it on the same counter.
    tables = np.zeros((4, len(counts)), dtype=np.int64)
    first, second, third, fourth = tables[0], tables[1], tables[2], tables[3]
    for block_start in range(start, stop, BLOCK_ITEMS):
        length = min(BLOCK_ITEMS, stop - block_start)
        # A contiguous block that is indexed from zero needs no wrap-around test, and so its loop vectorises.
        block = words[0, block_start : block_start + length]
        for item in range(length):
            distances[item] = popcount(block[item] ^ query[0])
        for word in range(1, len(query)):
            block = words[word, block_start : block_start + length]
            for item in range(length):
                distances[item] += popcount(block[item] ^ query[word])
        for item in range(length // 4):
            four = quadruples[item]
            first[four & lowest] += 1
            second[(four >> np.uint64(16)) & lowest] += 1
            third[(four >> np.uint64(32)) & lowest] += 1
            fourth[four >> np.uint64(48)] += 1
        for item in range(length - length % 4, length):
            first[distances[item]] += 1
    for distance in range(len(counts)):
        counts[distance] += first[distance] + second[distance] + third[distance] + fourth[distance]


@njit(cache=True, parallel=True, nogil=True)
def _count_by_distance(
    query_words: NDArray[np.uint64],
    database_words: NDArray[np.uint64],
    class_starts: NDArray[np.int64],
    class_stops: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Fill counts (2: all and relevant, queries, K + 1); the items of a query's class are one slice of the database."""
    for query in prange(query_words.shape[0]):
        start, stop = class_starts[query], class_stops[query]
        everything, relevant = counts[0, query], counts[1, query]
        _add_slice(query_words[query], database_words, start, stop, relevant)
        # numba compiles a function once more for a literal 0.
        _add_slice(query_words[query], database_words, np.int64(0), start, everything)
        _add_slice(query_words[query], database_words, stop, database_words.shape[1], everything)
        everything += relevant
