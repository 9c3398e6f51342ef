"""Count a database by Hamming distance from every query: the one expensive step of evaluation."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval.codes import check_code_length, check_code_shape, check_codes, code_words
from deephash_pipeline.retrieval.histograms import DistanceHistograms, GradedHistograms
from deephash_pipeline.retrieval.kernels.compiled import in_threads
from deephash_pipeline.retrieval.kernels.histograms import BLOCK_ITEMS, BLOCK_WORDS, count_items, difference_tables
from deephash_pipeline.retrieval.kernels.sharing import count_sharing
from deephash_pipeline.retrieval.labels import check_label_pair

# Working memory is that of one shard: 2 MiB of tables at 48 bits.
SHARD_ITEMS = 8 * BLOCK_ITEMS


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
    query_labels, database_labels = check_label_pair(
        query_labels, len(query_codes), database_labels, len(database_codes)
    )
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
    query_labels, database_labels = check_label_pair(
        query_labels, len(query_codes), database_labels, len(database_codes)
    )
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
