"""From codes to their items: the last step of a search, and all there is to one within a radius."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from deephash_pipeline.search.kernels.keys import KEYS, ROW_BITS, ROW_MASK, sort_keys
from deephash_pipeline.search.kernels.nearest import CHUNK_CODES, CODE, DISTANCE, is_allowed, list_near, next_near
from deephash_pipeline.search.kernels.sliced import BLOCK_CODES


@njit(cache=True, nogil=True)
def _merge(answers: Any, found: int, rows: Any, allowed: Any, first_row: int, spare: Any) -> int:
    """Merge the allowed rows of a code, in order, into answers[:found], in order; what does not fit is left out."""
    if found == len(answers) and first_row + np.int64(rows[0]) > answers[found - 1]:
        return found
    if found == 0 and len(allowed) == 0:
        taken = min(len(answers), len(rows))
        for place in range(taken):
            answers[place] = first_row + np.int64(rows[place])
        return taken
    kept, merged, place = found, 0, 0
    spare[:kept] = answers[:kept]
    read = 0
    while merged < len(answers):
        while place < len(rows) and not is_allowed(allowed, rows[place]):
            place += 1
        if place < len(rows) and (read == kept or first_row + np.int64(rows[place]) < spare[read]):
            answers[merged] = first_row + np.int64(rows[place])
            place += 1
        elif read < kept:
            answers[merged] = spare[read]
            read += 1
        else:
            break
        merged += 1
    return merged


@njit(cache=True, nogil=True)
def list_items(
    first_query: int,
    stop_query: int,
    starts: NDArray[np.uint32],
    rows: NDArray[np.uint32],
    code_of: NDArray[np.uint32],
    allowed: NDArray[np.uint64],
    by_code: bool,
    first_row: int,
    stop_row: int,
    keys: NDArray[np.int64],
    counts: NDArray[np.int64],
    listed: NDArray[np.int64],
    status: NDArray[np.int64],
    answers: NDArray[np.int64],
    distances: NDArray[np.int32],
) -> None:
    """List the items of a part that are among the nearest of some queries, after those of the parts before it.

    Args:
        first_query: the first of the queries,
        stop_query: and the one after the last.
        starts: see `nearest.search_part`,
        rows: likewise.
        code_of: uint32 (items,), code of every row of the part; empty if every row has its own.
        allowed: see `nearest.search_part`.
        by_code: likewise.
        first_row: number of the part's first row in the index,
        stop_row: and of the row after its last.
        keys: of `nearest.search_part`, brought into order with the first part.
        counts: of `nearest.search_part`.
        listed: int64 (queries, code_length + 1), zeros for the first part: items listed so far at each distance.
        status: of `nearest.search_part`.
        answers: int64 (queries, number of answers), written: rows of the index.
        distances: int32 (queries, number of answers), written.
    """
    wanted = answers.shape[1]
    spare = np.empty(wanted, dtype=np.int64)
    for query in range(first_query, stop_query):
        of_query, of_keys = answers[query], keys[query]
        if first_row == 0:
            sort_keys(wanted, of_keys, counts[query], status[query])
        place, start = 0, 0
        while place < status[query, KEYS] and start < wanted:
            distance = of_keys[place] >> ROW_BITS
            stop = min(start + counts[query, distance], wanted)
            first, found = start + listed[query, distance], 0
            while place < status[query, KEYS] and of_keys[place] >> ROW_BITS == distance:
                row = of_keys[place] & ROW_MASK
                place += 1
                if row < first_row or row >= stop_row:
                    continue
                single = len(code_of) == 0
                if not single:
                    code = row - first_row if by_code else np.int64(code_of[row - first_row])
                    begin, end = np.int64(starts[code]), np.int64(starts[code + 1])
                    single = end == begin + 1
                    if by_code:
                        row = first_row + np.int64(rows[begin])
                if single and (found == 0 or of_query[first + found - 1] < row):
                    if first + found < stop:
                        of_query[first + found] = row
                        found += 1
                elif first < stop:
                    found = _merge(of_query[first:stop], found, rows[begin:end], allowed, first_row, spare)
            listed[query, distance] += found
            distances[query, start:stop] = distance
            start = stop


@njit(cache=True, nogil=True)
def count_within(
    first_query: int,
    stop_query: int,
    queries: NDArray[np.uint64],
    words: NDArray[np.uint64],
    codes: int,
    starts: NDArray[np.uint32],
    rows: NDArray[np.uint32],
    allowed: NDArray[np.uint64],
    first_row: int,
    radius: int,
    keys: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> None:
    """Count the items within a radius of some queries, or write their keys, if there is room for keys.

    Args:
        first_query: the first of the queries,
        stop_query: and the one after the last.
        queries: see `nearest.search_part`,
        words: likewise,
        codes: likewise,
        starts: likewise,
        rows: likewise,
        allowed: likewise,
        first_row: likewise.
        radius: the largest distance that counts.
        keys: int64, written from ends[query] on; empty for counting alone.
        ends: int64 (queries,), raised by the number of items found.
    """
    distances = np.empty(CHUNK_CODES, dtype=np.uint64)
    near = np.empty((CHUNK_CODES + 1, 2), dtype=np.int64)
    for first in range(0, codes, BLOCK_CODES):
        last = min(first + BLOCK_CODES, codes)
        # Queries in turn, a block stays in the cache.
        for query in range(first_query, stop_query):
            chunk = next_near(words, first, last, queries[query], radius, distances)
            while chunk < last:
                for listed in range(list_near(distances, chunk, last, radius, near)):
                    code, distance = near[listed, CODE], near[listed, DISTANCE]
                    start = np.int64(starts[code]) if len(starts) else code
                    stop = np.int64(starts[code + 1]) if len(starts) else code + 1
                    for place in range(start, stop):
                        row = np.int64(rows[place]) if len(starts) else place
                        if is_allowed(allowed, row):
                            if len(keys):
                                keys[ends[query]] = distance << ROW_BITS | (first_row + row)
                            ends[query] += 1
                chunk = next_near(words, chunk + CHUNK_CODES, last, queries[query], radius, distances)


@njit(cache=True, nogil=True)
def sort_ranges(first_query: int, stop_query: int, starts: NDArray[np.int64], keys: NDArray[np.int64]) -> None:
    """Sort keys[starts[query] : starts[query + 1]] for some queries."""
    for query in range(first_query, stop_query):
        of_query = keys[starts[query] : starts[query + 1]]
        of_query[:] = np.sort(of_query)
