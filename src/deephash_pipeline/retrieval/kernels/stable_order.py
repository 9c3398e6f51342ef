"""The walk through a database that finds the place of every relevant item in stable order."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from deephash_pipeline.retrieval.kernels.compiled import popcount

# The walk takes so many items at a time, in so many strips side by side: a counter waits for its last increment, and
# neighbouring items are often equally far. What is kept of a block, 16 KiB, stays in the first-level cache.
STRIPS = 4
STRIP_ITEMS = 1024
BLOCK_ITEMS = STRIPS * STRIP_ITEMS


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
def walk_for_queries(
    first_query: int,
    stop_query: int,
    query_words: NDArray[np.uint64],
    database_words: NDArray[np.uint64],
    labels: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    label_sets: tuple[NDArray[np.uint64], NDArray[np.uint64]],
    places: NDArray[np.int64],
    numbers: NDArray[np.int64],
    places_that_count: int,
    average_precision: NDArray[np.float64],
) -> None:
    """Fill average_precision[first_query:stop_query].

    Places and numbers (queries, K + 1) are used up, see _sum_of_precisions. The relevant items of a query are
    by_label[start:stop], or, if there are sets of labels, those that share one.
    """
    by_label, starts, stops = labels
    query_label_sets, database_label_sets = label_sets
    found = np.empty(len(database_label_sets), dtype=np.int64)
    for query in range(first_query, stop_query):
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
