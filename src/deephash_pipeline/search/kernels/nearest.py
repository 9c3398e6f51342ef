"""The k nearest items of every query, exactly, in the order of (distance, row), a part of an index at a time.

`keys` says what is kept of a query, and when a code is no longer worth looking at.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from deephash_pipeline.retrieval.kernels.compiled import popcount
from deephash_pipeline.search.kernels.keys import KEYS, LIMIT, NEARER, ROW_BITS, lower_limit, make_room
from deephash_pipeline.search.kernels.sliced import (
    BLOCK_CODES,
    BLOCK_WORDS,
    NONE,
    WORD_CODES,
    mark_near,
    new_table,
    table_entries,
    tabulate,
)

# Codes that are asked at once whether any of them is near enough.
CHUNK_CODES = 256
# Codes that are compared first: where equal codes are many, these already set a limit.
FIRST_CODES = 16
CODE, DISTANCE = 0, 1
"""Columns of a list of codes."""


@njit(cache=True, nogil=True)
def is_allowed(allowed: Any, row: Any) -> bool:
    """Whether a bitmap, uint64 (words,), has a row; an empty one has all."""
    word = np.int64(row) >> 6
    return len(allowed) == 0 or (allowed[word] >> np.uint64(np.int64(row) & 63)) & np.uint64(1) != NONE


@njit(cache=True, nogil=True)
def next_near(words: Any, first: int, stop: int, query: Any, limit: int, distances: Any) -> int:
    """Walk codes first..stop in chunks; return where the first chunk begins that has one as near as `limit`.

    Args:
        words: codes, uint64 (words, codes).
        first: where to begin,
        stop: and where to end; returned if there is no such chunk.
        query: uint64 (words,).
        limit: the largest distance that counts.
        distances: uint64 (CHUNK_CODES,), written: distances of the codes of the chunk.
    """
    row, bits, farthest = words[0], query[0], np.uint64(limit)
    for chunk in range(first, stop, CHUNK_CODES):
        start, size = np.uint64(chunk), np.uint64(min(CHUNK_CODES, stop - chunk))
        least = np.uint64(64 * len(query) + 1)
        for place in range(size):
            distance = popcount(row[start + place] ^ bits)
            distances[place] = distance
            least = min(least, distance)
        if len(query) > 1:
            for word in range(1, len(query)):
                _add_distances(words[word], start, size, query[word], distances)
            least = distances[0]
            for place in range(size):
                least = min(least, distances[place])
        if least <= farthest:
            return chunk
    return stop


@njit(cache=True, nogil=True)
def _add_distances(row: Any, start: Any, size: Any, bits: Any, distances: Any) -> None:
    for place in range(size):
        distances[place] += popcount(row[start + place] ^ bits)


@njit(cache=True, nogil=True)
def list_near(distances: Any, chunk: int, stop: int, limit: int, near: Any) -> int:
    """List those codes of a chunk that are as near as `limit`, with their distances; return how many there are."""
    size, listed, farthest = min(CHUNK_CODES, stop - chunk), 0, np.uint64(limit)
    for first in range(0, size, WORD_CODES):
        start, of_word = np.uint64(first), np.uint64(min(WORD_CODES, size - first))
        # Mostly one code of a chunk is near: the least of 64 distances is found faster than 64 marks are made.
        least = farthest + np.uint64(1)
        for place in range(of_word):
            least = min(least, distances[start + place])
        if least > farthest:
            continue
        marked = NONE
        for place in range(of_word):
            marked |= np.uint64(distances[start + place] <= farthest) << place
        while marked != NONE:
            lowest = marked & (~marked + np.uint64(1))
            code = first + np.int64(popcount(lowest - np.uint64(1)))
            near[listed, CODE], near[listed, DISTANCE] = chunk + code, np.int64(distances[code])
            listed += 1
            marked ^= lowest
    return listed


@njit(cache=True, nogil=True)
def _list_marked(marks: Any, row: Any, bits: Any, first: int, begin: int, stop: int, near: Any) -> int:
    """List the codes begin..stop of a block that are marked, see `mark_near`, as `list_near` does."""
    listed = 0
    for word in range((begin - first) // WORD_CODES, (stop - first + WORD_CODES - 1) // WORD_CODES):
        marked = marks[word]
        while marked != NONE:
            lowest = marked & (~marked + np.uint64(1))
            code = first + word * WORD_CODES + np.int64(popcount(lowest - np.uint64(1)))
            if code < stop:
                near[listed, CODE], near[listed, DISTANCE] = code, np.int64(popcount(row[code] ^ bits))
                listed += 1
            marked ^= lowest
    return listed


@njit(cache=True, nogil=True)
def _accept(
    near: Any,
    listed: int,
    starts: Any,
    rows: Any,
    allowed: Any,
    by_code: bool,
    first_row: int,
    k: int,
    keys: Any,
    counts: Any,
    firm: Any,
    status: Any,
) -> None:
    """Take the items of the listed codes into the answers of a query, as far as they are of use."""
    for place in range(listed):
        code, distance = near[place, CODE], near[place, DISTANCE]
        if distance > status[LIMIT]:
            continue
        row: Any = code
        items: Any = 1
        certain = 1
        if len(starts) == 0:
            if not is_allowed(allowed, code):
                continue
        elif len(allowed) == 0:
            items = min(k, np.int64(starts[code + 1]) - np.int64(starts[code]))
            if not by_code:
                row = np.int64(rows[starts[code]])
        else:
            start, items = np.int64(starts[code]), 0
            for of_code in range(start, np.int64(starts[code + 1])):
                if is_allowed(allowed, rows[of_code]):
                    if items == 0:
                        # A code whose first item is not allowed may begin later than codes that come after it.
                        row, certain = np.int64(rows[of_code]), int(of_code == start)
                    items += 1
                    if items == k:
                        break
            if items == 0:
                continue
        if status[KEYS] == len(keys):
            make_room(k, keys, counts, status)
        keys[status[KEYS]] = np.int64(distance) << ROW_BITS | (first_row + row)
        status[KEYS] += 1
        counts[distance] += items
        firm[distance] += certain
        if distance < status[LIMIT]:
            status[NEARER] += items
        lower_limit(k, counts, firm, status)


@njit(cache=True, nogil=True)
def search_part(
    first_query: int,
    stop_query: int,
    queries: NDArray[np.uint64],
    words: NDArray[np.uint64],
    codes: int,
    starts: NDArray[np.uint32],
    rows: NDArray[np.uint32],
    allowed: NDArray[np.uint64],
    by_code: bool,
    first_row: int,
    code_length: int,
    k: int,
    sliced: bool,
    keys: NDArray[np.int64],
    counts: NDArray[np.int64],
    firm: NDArray[np.int64],
    status: NDArray[np.int64],
) -> None:
    """Let queries walk the codes of a part of an index, all of them a block before any of them the next.

    Args:
        first_query: the first of the queries to answer,
        stop_query: and the one after the last.
        queries: codes, uint64 (queries, words).
        words: codes of the part, uint64 (words, at least `codes`), in the order of their first items.
        codes: how many there are.
        starts: uint32 (codes + 1,), where in `rows` the items of each code are; empty if every row has a code of its
            own, in order.
        rows: uint32 (items,), rows of the part in the order of their codes, then their own; empty likewise.
        allowed: uint64, bitmap of the rows that may be found; empty if all may.
        by_code: whether keys have codes, which takes no look at `rows`; only if all rows may be found.
        first_row: number of the part's first row in the index.
        code_length: bits per code.
        k: how many items to find, at least 1.
        sliced: whether to compare bit by bit, see `sliced`: for up to 64 bits, and worth it for some 64 queries.
        keys: int64 (queries, at least 3 k), written.
        counts: int64 (queries, code_length + 1): items found at each distance.
        firm: like `counts`, those that precede all to come.
        status: int64 (queries, STATUS); in the beginning (code_length, 0, 0).
    """
    distances = np.empty(CHUNK_CODES, dtype=np.uint64)
    marks = np.empty(BLOCK_WORDS, dtype=np.uint64)
    near = np.empty((BLOCK_CODES + 1, 2), dtype=np.int64)
    for query in range(first_query, stop_query if first_row else first_query):
        # All that was found in earlier parts precedes this one.
        firm[query] = counts[query]
        lower_limit(k, counts[query], firm[query], status[query])
    table, entries = marks, queries
    if sliced:
        table = new_table(code_length)
        entries = table_entries(queries[first_query:stop_query, 0], code_length)
    for first in range(0, codes, BLOCK_CODES):
        stop = min(first + BLOCK_CODES, codes)
        # The first codes are scanned in small steps: before that there is no limit to compare with.
        scanned = first if first else min(CHUNK_CODES, stop)
        by_bits = sliced and scanned < stop
        words_of_block = min(BLOCK_WORDS, (stop - first + 8 * WORD_CODES - 1) // (8 * WORD_CODES) * 8)
        if by_bits:
            tabulate(words[0], first, stop, code_length, table)
        for query in range(first_query, stop_query):
            state, code = status[query], first
            of_query, of_keys, of_counts, of_firm = queries[query], keys[query], counts[query], firm[query]
            while code < stop and state[LIMIT] >= 0:
                if by_bits and code >= scanned:
                    found = mark_near(table, entries[query - first_query], state[LIMIT], words_of_block, marks)
                    listed = _list_marked(marks, words[0], of_query[0], first, code, stop, near) if found else 0
                    code = stop
                else:
                    until = scanned if by_bits else stop
                    until = until if state[KEYS] else min(code + FIRST_CODES, until)
                    code = next_near(words, code, until, of_query, state[LIMIT], distances)
                    listed = list_near(distances, code, until, state[LIMIT], near) if code < until else 0
                    code = min(code + CHUNK_CODES, until)
                if listed:
                    _accept(
                        near, listed, starts, rows, allowed, by_code, first_row, k,
                        of_keys, of_counts, of_firm, state,
                    )  # fmt: skip
