"""Count a database by Hamming distance from every query: the one expensive step of evaluation."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from deephash_pipeline.retrieval.codes import check_code_length, check_code_shape, check_codes, code_words
from deephash_pipeline.retrieval.histograms import DistanceHistograms
from deephash_pipeline.retrieval.kernels.compiled import in_threads
from deephash_pipeline.retrieval.kernels.histograms import (
    ALL,
    BLOCK_ITEMS,
    BLOCK_WORDS,
    count_at_least,
    difference_tables,
)
from deephash_pipeline.retrieval.labels import check_label_pair

# Working memory is that of one shard: 2 MiB of tables at 48 bits.
SHARD_ITEMS = 8 * BLOCK_ITEMS
LABEL_SETS_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class _RelevantItems:
    """Where in a shard the items relevant to each query are: those of one of the bitmaps, in a range of items.

    Attributes:
        order: how to sort the shard, int64 (items,).
        bitmaps: uint64 (maps, words), one bit per item of the sorted shard; the first holds every item.
        bitmap_of_query, starts, stops: int64 (queries,).
    """

    order: NDArray[np.int64]
    bitmaps: NDArray[np.uint64]
    bitmap_of_query: NDArray[np.int64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]


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
        query_labels: whole numbers, (queries,); or bool (queries, classes), which of the labels an item carries.
        database_codes: packed codes, uint8 (items, ceil(code_length / 8)).
        database_labels: whole numbers, (items,); or bool (items, classes).
        code_length: bits per code, 1..504.

    Raises:
        InputError: if an argument has another type or shape, or there is no query or no item.
    """
    code_length = check_code_length(code_length)
    query_words = code_words(check_codes(query_codes, code_length, "query_codes"))
    check_code_shape(database_codes, code_length, "database_codes")
    query_labels, database_labels = check_label_pair(
        query_labels, len(query_codes), database_labels, len(database_codes)
    )
    # The kernel counts eight distances at a time.
    counts = np.zeros((2, len(query_codes), (code_length // 8 + 1) * 8), dtype=np.int64)
    find_relevant = _find_same_label if query_labels.ndim == 1 else _find_shared_labels
    queries = len(query_codes)
    for first in range(0, len(database_codes), SHARD_ITEMS):
        shard = slice(first, first + SHARD_ITEMS)
        relevant = find_relevant(query_labels, np.asarray(database_labels[shard]))
        codes = check_codes(np.asarray(database_codes[shard])[relevant.order], code_length, "database_codes")
        shared = (
            query_words,
            difference_tables(code_words(codes), code_length),
            relevant.bitmaps,
            relevant.bitmap_of_query,
            relevant.starts,
            relevant.stops,
            len(codes),
            code_length,
            counts,
        )
        in_threads(partial(_count_for, shared), queries)
    in_threads(lambda start, stop: _count_exactly(start, stop, code_length, counts), queries)
    return DistanceHistograms(all=counts[0, :, : code_length + 1], relevant=counts[1, :, : code_length + 1])


def _count_for(shared: tuple[Any, ...], first_query: int, behind_query: int) -> None:
    count_at_least(first_query, behind_query, *shared)


@njit(cache=True, nogil=True)
def _count_exactly(first_query: int, behind_query: int, code_length: int, counts: NDArray[np.int64]) -> None:
    """Turn counts by "at least these binary digits" into counts by distance, in place: inclusion and exclusion."""
    for kind in range(counts.shape[0]):
        for query in range(first_query, behind_query):
            of_query = counts[kind, query]
            step = 1
            while step <= code_length:
                for s in range(code_length + 1 - step):
                    if not s & step:
                        of_query[s] -= of_query[s + step]
                step *= 2


def _find_same_label(query_labels: NDArray[np.int64], labels: NDArray[np.int64]) -> _RelevantItems:
    """Sort a shard by label: then the items relevant to a query are neighbours."""
    lowest, highest = int(labels.min()), int(labels.max())
    # numpy sorts numbers of 16 bits by radix, several times as fast.
    keys = (labels - lowest).astype(np.uint16) if highest - lowest < 2**16 else labels
    order = np.argsort(keys, kind="stable")
    in_order = labels[order]
    return _RelevantItems(
        order=order,
        bitmaps=_every_item(len(labels)),
        bitmap_of_query=np.zeros(len(query_labels), dtype=np.int64),
        starts=np.searchsorted(in_order, query_labels, side="left"),
        stops=np.searchsorted(in_order, query_labels, side="right"),
    )


def _find_shared_labels(query_labels: NDArray[np.bool_], labels: NDArray[np.bool_]) -> _RelevantItems:
    """Make a bitmap of relevant items for every set of labels that a query has."""
    label_sets, set_of_query = np.unique(query_labels, axis=0, return_inverse=True)
    everything = _every_item(len(labels))
    bitmaps = np.zeros((1 + len(label_sets), everything.shape[1]), dtype=np.uint64)
    bitmaps[0] = everything
    counted = labels.astype(np.float32)
    for start in range(0, len(label_sets), LABEL_SETS_AT_ONCE):
        sets = label_sets[start : start + LABEL_SETS_AT_ONCE]
        packed = np.packbits(sets.astype(np.float32) @ counted.T > 0, axis=1, bitorder="little")
        bitmaps[1 + start : 1 + start + len(sets)].view(np.uint8)[:, : packed.shape[1]] = packed
    queries = len(query_labels)
    return _RelevantItems(
        order=np.arange(len(labels)),
        bitmaps=bitmaps,
        bitmap_of_query=1 + set_of_query.reshape(-1),
        starts=np.zeros(queries, dtype=np.int64),
        stops=np.full(queries, len(labels)),
    )


def _every_item(items: int) -> NDArray[np.uint64]:
    blocks = -(-items // BLOCK_ITEMS)
    return np.full((1, blocks * BLOCK_WORDS), ALL)
