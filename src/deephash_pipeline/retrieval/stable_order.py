"""Average precision in stable order: by distance, and among equally far items by index in the database.

Published code sorts, and what it reports is the value for one order among equally far items. This is that value for
a stable sort, to compare with; `average_precision` gives the mean over all orders. A database stored class by class
favours some classes here, and another order of the same database gives another value.

Nothing is sorted. The place of an item is one more than the number of nearer items, which a histogram knows, and of
equally far items before it, which a counter per distance knows on a walk through the database.
"""

from numbers import Integral
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from deephash_pipeline.errors import InputError
from deephash_pipeline.retrieval.codes import code_words
from deephash_pipeline.retrieval.counting import count_distances
from deephash_pipeline.retrieval.kernels.compiled import in_threads, popcount
from deephash_pipeline.retrieval.labels import check_label_pair

# The walk takes so many items at a time, in so many strips side by side: a counter waits for its last increment, and
# neighbouring items are often equally far. What is kept of a block, 16 KiB, stays in the first-level cache.
STRIPS = 4
STRIP_ITEMS = 1024
BLOCK_ITEMS = STRIPS * STRIP_ITEMS


def stable_order_average_precision(
    query_codes: NDArray[np.uint8],
    query_labels: NDArray[Any],
    database_codes: NDArray[np.uint8],
    database_labels: NDArray[Any],
    code_length: int,
    k: int | None = None,
) -> NDArray[np.float64]:
    """Average precision of every query with the database ranked by distance, then by index in the database.

    AP = 1/R sum_i i / p_i over the relevant items, where p_i is the place of the i-th of them; R items are relevant.
    With `k`, only places 1..k count, and the sum is divided by min(R, k) instead, as in `average_precision_at`.
    Which items are relevant is as in `count_distances`. Memory grows with queries + items, never with their product.
    The number of threads (`numba.set_num_threads`) changes nothing.

    Args:
        query_codes: packed codes, uint8 (queries, ceil(code_length / 8)), see `pack_bits`.
        query_labels: whole numbers, (queries,); or bool (queries, classes), which of the labels an item carries.
        database_codes: packed codes, uint8 (items, ceil(code_length / 8)).
        database_labels: whole numbers, (items,); or bool (items, classes).
        code_length: bits per code, 1..504.
        k: how many places count; a k beyond the database, or None, means all of it.

    Returns:
        float64 (queries,) in 0..1; nan for a query without relevant items.

    Raises:
        InputError: if an argument has another type or shape, there is no query or no item, or k is no whole number of
            at least 1.
    """
    _check_places(k)
    histograms = count_distances(query_codes, query_labels, database_codes, database_labels, code_length)
    places_that_count = len(database_codes) if k is None else min(int(k), len(database_codes))
    query_labels, database_labels = check_label_pair(
        query_labels, len(query_codes), database_labels, len(database_codes)
    )
    by_label, starts, stops = np.empty((3, 0), dtype=np.int64)
    query_label_sets = database_label_sets = np.empty((0, 0), dtype=np.uint64)
    if query_labels.ndim == 2:
        query_label_sets = code_words(np.packbits(query_labels, axis=1))
        database_label_sets = code_words(np.packbits(database_labels, axis=1))
    else:
        by_label = np.argsort(database_labels, kind="stable")
        in_order = database_labels[by_label]
        starts = np.searchsorted(in_order, query_labels, side="left")
        stops = np.searchsorted(in_order, query_labels, side="right")

    average_precision = np.empty(len(query_codes))
    shared = (
        code_words(query_codes),
        np.ascontiguousarray(code_words(database_codes).T),
        (by_label, starts, stops),
        (query_label_sets, database_label_sets),
        np.cumsum(histograms.all, axis=1) - histograms.all + 1,
        np.cumsum(histograms.relevant, axis=1) - histograms.relevant + 1,
        places_that_count,
        average_precision,
    )
    in_threads(lambda start, stop: _walk_for_queries(start, stop, *shared), len(query_codes))
    return average_precision


def _check_places(k: int | None) -> None:
    if k is not None and (isinstance(k, bool) or not isinstance(k, Integral) or k < 1):
        raise InputError(f"k is {k!r}; give a whole number of items of at least 1, or None for the whole database.")


@njit(cache=True, nogil=True)
def _measure_distances(
    query: NDArray[np.uint64], words: NDArray[np.uint64], start: int, length: int, distances: NDArray[np.uint16]
) -> None:
    """Fill distances[:length] from a query (words,) to the items from start on of a database (words, n)."""
    # A contiguous block that is indexed from zero needs no wrap-around test, and so its loop vectorises.
    block = words[0, start : start + length]
    for item in range(length):
        distances[item] = popcount(block[item] ^ query[0])
    for word in range(1, len(query)):
        block = words[word, start : start + length]
        for item in range(length):
            distances[item] += popcount(block[item] ^ query[word])


@njit(cache=True, nogil=True)
def _count_earlier(
    distances: NDArray[np.uint16], length: int, earlier: NDArray[np.uint16], counts: NDArray[np.uint16]
) -> None:
    """Fill earlier[:length] with the number of equally far items before each item in its strip.

    Counts (STRIPS, K + 1) is filled with the number of items of each strip at each distance.
    """
    counts[:] = 0
    if length == BLOCK_ITEMS:
        for step in range(STRIP_ITEMS):
            for strip in range(STRIPS):
                item = strip * STRIP_ITEMS + step
                distance = distances[item]
                count = counts[strip, distance]
                earlier[item] = count
                counts[strip, distance] = count + 1
    else:
        for item in range(length):
            strip = item // STRIP_ITEMS
            earlier[item] = counts[strip, distances[item]]
            counts[strip, distances[item]] += 1


@njit(cache=True, nogil=True)
def _sum_of_precisions(
    query: NDArray[np.uint64],
    words: NDArray[np.uint64],
    relevant_items: NDArray[np.int64],
    places: NDArray[np.int64],
    numbers: NDArray[np.int64],
    places_that_count: int,
) -> float:
    """Sum i / p_i over the relevant items, given by index in ascending order.

    Places and numbers (K + 1,) hold, for every distance, the place of the next item at that distance and how many-th
    relevant item the next relevant one there is: on entry those of the first ones. Both are advanced.
    """
    distances = np.empty(BLOCK_ITEMS, dtype=np.uint16)
    earlier = np.empty(BLOCK_ITEMS, dtype=np.uint16)
    counts = np.empty((STRIPS, len(places)), dtype=np.uint16)
    strip_places = np.empty((STRIPS, len(places)), dtype=np.int64)
    total = 0.0
    position = 0
    for start in range(0, words.shape[1], BLOCK_ITEMS):
        length = min(BLOCK_ITEMS, words.shape[1] - start)
        _measure_distances(query, words, start, length, distances)
        _count_earlier(distances, length, earlier, counts)
        for strip in range(STRIPS):
            for distance in range(len(places)):
                strip_places[strip, distance] = places[distance]
                places[distance] += counts[strip, distance]
        while position < len(relevant_items) and relevant_items[position] < start + length:
            item = np.uint64(relevant_items[position] - start)
            distance = distances[item]
            place = strip_places[item // np.uint64(STRIP_ITEMS), distance] + earlier[item]
            number = numbers[distance]
            numbers[distance] = number + 1
            total += number / place if place <= places_that_count else 0.0
            position += 1
    return total


@njit(cache=True, nogil=True)
def _list_sharing_a_label(
    query_label_sets: NDArray[np.uint64], database_label_sets: NDArray[np.uint64], found: NDArray[np.int64]
) -> np.uint64:
    """Write to found, in ascending order, the items (n, words) with a bit in common with a query; return how many."""
    listed = np.uint64(0)
    for item in range(len(database_label_sets)):
        shared = np.uint64(0)
        for word in range(len(query_label_sets)):
            shared |= query_label_sets[word] & database_label_sets[item, word]
        # Written in any case and overwritten if the item shares nothing: a branch would be mispredicted.
        found[listed] = item
        listed += np.uint64(shared != 0)
    return listed


@njit(cache=True, nogil=True)
def _walk_for_queries(
    first_query: int,
    behind_query: int,
    query_words: NDArray[np.uint64],
    database_words: NDArray[np.uint64],
    labels: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    label_sets: tuple[NDArray[np.uint64], NDArray[np.uint64]],
    places: NDArray[np.int64],
    numbers: NDArray[np.int64],
    places_that_count: int,
    average_precision: NDArray[np.float64],
) -> None:
    """Fill average_precision[first_query:behind_query].

    Places and numbers (queries, K + 1) are used up, see _sum_of_precisions. The relevant items of a query are
    by_label[start:stop], or, if there are sets of labels, those that share one.
    """
    by_label, starts, stops = labels
    query_label_sets, database_label_sets = label_sets
    found = np.empty(len(database_label_sets), dtype=np.int64)
    for query in range(first_query, behind_query):
        if len(query_label_sets):
            relevant_items = found[: _list_sharing_a_label(query_label_sets[query], database_label_sets, found)]
        else:
            relevant_items = by_label[starts[query] : stops[query]]
        if not len(relevant_items):
            average_precision[query] = np.nan
            continue
        total = _sum_of_precisions(
            query_words[query],
            database_words,
            relevant_items,
            places[query],
            numbers[query],
            places_that_count,
        )
        average_precision[query] = total / min(len(relevant_items), places_that_count)
