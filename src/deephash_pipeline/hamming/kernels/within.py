"""All items within a radius of queries, each code looked at once: what is found goes to the end of one list.

A list that is full ends a call, which says where to go on; the caller has a longer one then. Few queries are answered
by `scan`, many by `sliced`, as for the nearest items.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.kernels.keys import ROW_BITS
from deephash_pipeline.hamming.kernels.nearest import Part, is_allowed
from deephash_pipeline.hamming.kernels.scan import CHUNK_CODES, scan_chunk
from deephash_pipeline.hamming.kernels.sliced import (
    BLOCK_CODES,
    CODE,
    DISTANCE,
    QUERIES_AT_ONCE,
    UNIT_BITS,
    UNIT_TRIPLES,
    WORD_CODES,
    Working,
    add_8,
    add_16,
    add_24,
    list_marked,
    mark_near,
    mark_of_use,
    tabulate,
    turn_block,
)
from deephash_pipeline.retrieval.kernels.compiled import inner, kernel

ITEMS, QUERY, FIRST, NEXT_QUERY, WANTED, PROGRESS = 0, 1, 2, 3, 4, 5
"""Places in the progress of a search, int64: items found; query and code to go on with, and the query's place among
those that pass a block together; room that is wanted; and how many numbers these are."""

List = tuple[NDArray[np.int64], NDArray[np.int32]]
"""What is found: keys, distance << ROW_BITS | row, and the query of each."""


@inner
def _take(near: Any, listed: int, part: Any, query: int, keys: Any, owners: Any, progress: Any) -> None:
    """Add the items of the listed codes, as far as they are allowed."""
    _, _, starts, rows, allowed, _, _, first_row = part
    place = progress[ITEMS]
    for at in range(listed):
        code, distance = near[at, CODE], near[at, DISTANCE]
        start = np.int64(starts[code]) if len(starts) else code
        end = np.int64(starts[code + 1]) if len(starts) else code + 1
        for item in range(start, end):
            row = np.int64(rows[item]) if len(starts) else item
            if is_allowed(allowed, row):
                keys[place], owners[place] = distance << ROW_BITS | (first_row + row), query
                place += 1
    progress[ITEMS] = place


@inner
def _has_room(part: Any, first: int, stop: int, keys: Any, progress: Any) -> bool:
    """Whether all items of codes first..stop fit; if not, note the room that is wanted."""
    starts = part[2]
    most = np.int64(starts[stop]) - np.int64(starts[first]) if len(starts) else stop - first
    progress[WANTED] = progress[ITEMS] + most
    return bool(progress[WANTED] <= len(keys))


@kernel
def scan_within(
    stop_query: int, queries: NDArray[np.uint64], part: Part, radius: int, found: List, progress: NDArray[np.int64]
) -> bool:
    """Let queries walk the codes of a part, a chunk at a time, which stays in the cache for the next query.

    Args:
        stop_query: number of the query after the last; the first is where the progress begins.
        queries: codes, uint64 (queries, words).
        part: part to search.
        radius: the largest distance that counts.
        found: list, written from the number of items found on.
        progress: int64 (PROGRESS,), where to begin, with the first query in NEXT_QUERY; written.

    Returns:
        Whether all is done; or else a longer list is needed.
    """
    words, codes, _, _, _, of_use, _, _ = part
    keys, owners = found
    distances, marks = np.empty(CHUNK_CODES, dtype=np.uint64), np.empty(CHUNK_CODES // WORD_CODES, dtype=np.uint64)
    near = np.empty((CHUNK_CODES, 2), dtype=np.int64)
    while progress[FIRST] < codes:
        first = progress[FIRST]
        stop = min(first + CHUNK_CODES, codes)
        while progress[NEXT_QUERY] < stop_query:
            query = progress[NEXT_QUERY]
            listed = scan_chunk(words, first, stop, queries, query, radius, of_use, distances, marks, near)
            if listed:
                if not _has_room(part, first, stop, keys, progress):
                    return False
                _take(near, listed, part, query, keys, owners, progress)
            progress[NEXT_QUERY] += 1
        progress[NEXT_QUERY] = progress[QUERY]
        progress[FIRST] = stop
    return True


@kernel
def slice_within(
    first_query: int,
    stop_query: int,
    part: Part,
    code_length: int,
    radius: int,
    found: List,
    progress: NDArray[np.int64],
    working: Working,
) -> bool:
    """Do what `scan_within` does, bit by bit, see `sliced`: worth it for some 24 queries.

    Args:
        first_query: the first of the queries that `working` is of.
        stop_query: number of the query after the last.
        part: part to search.
        code_length: bits per code.
        radius: the largest distance that counts, at most the code length.
        found: see `scan_within`.
        progress: see `scan_within`; NEXT_QUERY counts from QUERY.
        working: arrays of `working_memory`, for these queries.

    Returns:
        Whether all is done; or else a longer list is needed.
    """
    words, codes, _, _, _, of_use, _, _ = part
    keys, owners = found
    entries, table, sums, planes, marks, _ = working
    units, digits = len(entries), sums.shape[1]
    near = np.empty((BLOCK_CODES, 2), dtype=np.int64)
    while progress[QUERY] < stop_query:
        first_of_some, stop_of_some = progress[QUERY], min(progress[QUERY] + QUERIES_AT_ONCE, stop_query)
        while progress[FIRST] < codes:
            first = progress[FIRST]
            stop = min(first + BLOCK_CODES, codes)
            turn_block(words, first, stop, planes)
            mark_of_use(of_use, first, marks[1])
            for unit in range(units):
                triples = min(UNIT_TRIPLES, (code_length - unit * UNIT_BITS + 2) // 3)
                tabulate(planes, unit * UNIT_BITS, (triples + 7) // 8 * 8, table)
                last = unit == units - 1
                for query in range(first_of_some + (progress[NEXT_QUERY] if last else 0), stop_of_some):
                    # A single unit needs no memory of each query.
                    place_of = query - first_of_some if units > 1 else 0
                    at = (unit * entries.shape[1] + query - first_query) * UNIT_TRIPLES
                    if triples > 16:
                        add_24(table, entries, at, sums, place_of * digits, digits, unit > 0)
                    elif triples > 8:
                        add_16(table, entries, at, sums, place_of * digits, digits, unit > 0)
                    else:
                        add_8(table, entries, at, sums, place_of * digits, digits, unit > 0)
                    if last and mark_near(sums, place_of * digits, digits, radius, marks):
                        if not _has_room(part, first, stop, keys, progress):
                            progress[NEXT_QUERY] = query - first_of_some
                            return False
                        listed = list_marked(sums, place_of, marks[0], first, first, stop, near)
                        _take(near, listed, part, query, keys, owners, progress)
            progress[NEXT_QUERY], progress[FIRST] = 0, stop
        progress[QUERY], progress[FIRST] = stop_of_some, 0
    return True


@kernel
def deal(found: List, ends: NDArray[np.int64], dealt: NDArray[np.int64]) -> None:
    """Deal keys to their queries.

    Args:
        found: keys and the query of each.
        ends: int64 (queries,), where the keys of each query begin; written: where they end.
        dealt: int64, written.
    """
    keys, owners = found
    for place in range(len(keys)):
        dealt[ends[owners[place]]] = keys[place]
        ends[owners[place]] += 1
