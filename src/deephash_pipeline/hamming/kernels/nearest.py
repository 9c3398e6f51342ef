"""The k nearest items of every query, exactly, in the order of (distance, row), a part of an index at a time.

`keys` says what is kept of a query, and when a code is no longer worth looking at. Few queries are answered by `scan`,
many by `sliced`: each is compiled when it is first needed.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.kernels.keys import KEYS, LIMIT, NEARER, ROW_BITS, lower_limit, make_room
from deephash_pipeline.hamming.kernels.scan import CHUNK_CODES, scan_chunk
from deephash_pipeline.hamming.kernels.sliced import (
    BLOCK_CODES,
    CODE,
    DISTANCE,
    NONE,
    ONE_WORD,
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
from deephash_pipeline.hamming.kernels.vectors import fetch
from deephash_pipeline.retrieval.kernels.compiled import inner, kernel

# Codes that are compared first: where equal codes are many, these already set a limit.
FIRST_CODES = 64
# 32-bit numbers in a cache line, and how many rows of a block are fetched: few codes may have all rows.
LINE_NUMBERS, FETCHED_ROWS = 16, 2048
# What several queries scan before any of them goes on.
SCANNED_WORDS = 1 << 15

Part = tuple[
    NDArray[np.uint64], int, NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint64], bool, int
]
"""A part of an index, as kernels take it:

- codes, uint64 (words, at least so many), in the order of their first items;
- how many there are;
- starts: uint32 (codes + 1,), where in `rows` the items of each code are; empty if every row has a code of its own, in
  order;
- rows: uint32 (items,), rows of the part in the order of their codes, then their own; empty likewise;
- allowed: uint64, bitmap of the rows that may be found; empty if all may;
- of_use: likewise, of the codes that have such a row;
- by_code: whether keys have codes, which takes no look at `rows`; only if all rows may be found;
- first_row: number of the part's first row in the index.
"""
KeptOfQueries = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""What is kept of queries:

- keys: int64 (queries, at least 3 k);
- counts: int64 (queries, code_length + 1): items found at each distance;
- firm: like `counts`, those that precede all to come;
- status: int64 (queries, STATUS); in the beginning (code_length, 0, 0).
"""


@inner
def is_allowed(allowed: Any, row: int) -> bool:
    """Whether a bitmap, uint64 (words,), has a row; an empty one has all."""
    return len(allowed) == 0 or (allowed[row >> 6] >> np.uint64(row & 63)) & ONE_WORD != NONE


@inner
def _accept(
    near: Any, listed: int, starts: Any, rows: Any, allowed: Any, by_code: bool, first_row: int, k: int,
    query: int, keys: Any, counts: Any, firm: Any, status: Any,
) -> None:  # fmt: skip
    """Take the items of the listed codes into the answers of a query, as far as they are of use."""
    for place in range(listed):
        code, distance = near[place, CODE], near[place, DISTANCE]
        if distance > status[query, LIMIT]:
            continue
        row: Any = code
        items: Any = 1
        certain = 1
        if len(starts) and len(allowed) == 0:
            items = min(k, np.int64(starts[code + 1]) - np.int64(starts[code]))
            if not by_code:
                row = np.int64(rows[starts[code]])
        elif len(starts):
            start, items = np.int64(starts[code]), 0
            for of_code in range(start, np.int64(starts[code + 1])):
                if is_allowed(allowed, np.int64(rows[of_code])):
                    if items == 0:
                        # A code whose first item is not allowed may begin later than codes that come after it.
                        row, certain = np.int64(rows[of_code]), int(of_code == start)
                    items += 1
                    if items == k:
                        break
        if status[query, KEYS] == keys.shape[1]:
            make_room(k, keys[query], counts[query], status[query])
        keys[query, status[query, KEYS]] = distance << ROW_BITS | (first_row + row)
        status[query, KEYS] += 1
        counts[query, distance] += items
        firm[query, distance] += certain
        if distance < status[query, LIMIT]:
            status[query, NEARER] += items
        lower_limit(k, query, counts, firm, status)


@inner
def _begin(first_query: int, stop_query: int, first_row: int, k: int, counts: Any, firm: Any, status: Any) -> None:
    for query in range(first_query, stop_query if first_row else first_query):
        # All that was found in earlier parts precedes this one.
        for distance in range(counts.shape[1]):
            firm[query, distance] = counts[query, distance]
        lower_limit(k, query, counts, firm, status)


@inner
def _scan_codes(
    first: int, stop: int, queries: Any, words: Any, starts: Any, rows: Any, allowed: Any, of_use: Any, by_code: bool,
    first_row: int, k: int, query: int, keys: Any, counts: Any, firm: Any, status: Any, distances: Any, marks: Any,
    near: Any,
) -> None:  # fmt: skip
    """Let a query walk codes first..stop, a chunk at a time."""
    while first < stop and status[query, LIMIT] >= 0:
        end = min(stop, first + min(CHUNK_CODES, max(FIRST_CODES, first)))
        listed = scan_chunk(words, first, end, queries, query, status[query, LIMIT], of_use, distances, marks, near)
        if listed:
            _accept(near, listed, starts, rows, allowed, by_code, first_row, k, query, keys, counts, firm, status)
        first = end


@kernel
def scan_part(
    first_query: int, stop_query: int, queries: NDArray[np.uint64], part: Part, k: int, found: KeptOfQueries
) -> None:
    """Let queries walk the codes of a part of an index, all of them a block before any of them the next.

    Args:
        first_query: the first of the queries to answer.
        stop_query: number of the query after the last.
        queries: codes, uint64 (queries, words).
        part: part to search.
        k: number of items to find, at least 1.
        found: state of the queries, written.
    """
    words, codes, starts, rows, allowed, of_use, by_code, first_row = part
    keys, counts, firm, status = found
    distances, marks = np.empty(CHUNK_CODES, dtype=np.uint64), np.empty(CHUNK_CODES // WORD_CODES, dtype=np.uint64)
    near = np.empty((CHUNK_CODES, 2), dtype=np.int64)
    _begin(first_query, stop_query, first_row, k, counts, firm, status)
    # So many codes stay in the cache for the next query; a single one walks them all.
    several = stop_query - first_query > 1
    block = max(CHUNK_CODES, SCANNED_WORDS // len(words) // WORD_CODES * WORD_CODES if several else codes)
    for first in range(0, codes, block):
        for query in range(first_query, stop_query):
            _scan_codes(
                first, min(first + block, codes), queries, words, starts, rows, allowed, of_use, by_code, first_row,
                k, query, keys, counts, firm, status, distances, marks, near,
            )  # fmt: skip


@kernel
def slice_part(
    first_query: int,
    stop_query: int,
    queries: NDArray[np.uint64],
    part: Part,
    code_length: int,
    k: int,
    found: KeptOfQueries,
    working: Working,
) -> None:
    """Do what `scan_part` does, bit by bit, see `sliced`: worth it for some 24 queries.

    Args:
        first_query: the first of the queries, see `scan_part`.
        stop_query: number of the query after the last, see `scan_part`.
        queries: codes, see `scan_part`.
        part: part to search, see `scan_part`.
        code_length: bits per code.
        k: number of items, see `scan_part`.
        found: state of the queries, see `scan_part`.
        working: arrays of `working_memory`, for these queries.
    """
    keys, counts, firm, status = found
    words, codes, starts, rows, allowed, of_use, by_code, first_row = part
    entries, table, sums, planes, marks, active = working
    units, digits = len(entries), sums.shape[1]
    near = np.empty((BLOCK_CODES, 2), dtype=np.int64)
    _begin(first_query, stop_query, first_row, k, counts, firm, status)
    for first_of_some in range(first_query, stop_query, QUERIES_AT_ONCE):
        stop_of_some = min(first_of_some + QUERIES_AT_ONCE, stop_query)
        for first in range(0, codes, BLOCK_CODES):
            stop, some = min(first + BLOCK_CODES, codes), 0
            for query in range(first_of_some, stop_of_some):
                if status[query, LIMIT] >= 0:
                    active[some] = query
                    some += 1
            if some == 0:
                break
            turn_block(words, first, stop, planes)
            mark_of_use(of_use, first, marks[1])
            for code in range(first, stop if len(starts) else first, LINE_NUMBERS):
                fetch(starts, code)
            if len(starts) and not by_code:
                first_place = np.int64(starts[first])
                for fetched in range(
                    first_place, min(np.int64(starts[stop]), first_place + FETCHED_ROWS), LINE_NUMBERS
                ):
                    fetch(rows, fetched)
            for unit in range(units):
                triples = min(UNIT_TRIPLES, (code_length - unit * UNIT_BITS + 2) // 3)
                tabulate(planes, unit * UNIT_BITS, (triples + 7) // 8 * 8, table)
                for place in range(some):
                    query = active[place]
                    # A single unit needs no memory of each query.
                    place_of = query - first_of_some if units > 1 else 0
                    at = (unit * entries.shape[1] + query - first_query) * UNIT_TRIPLES
                    if triples > 16:
                        add_24(table, entries, at, sums, place_of * digits, digits, unit > 0)
                    elif triples > 8:
                        add_16(table, entries, at, sums, place_of * digits, digits, unit > 0)
                    else:
                        add_8(table, entries, at, sums, place_of * digits, digits, unit > 0)
                    if unit < units - 1:
                        continue
                    # There is no limit at first: each code listed would lower it for those after it.
                    begin, end = first, stop if first else min(FIRST_CODES, stop)
                    while begin < stop and status[query, LIMIT] >= 0:
                        if mark_near(sums, place_of * digits, digits, status[query, LIMIT], marks):
                            listed = list_marked(sums, place_of, marks[0], first, begin, end, near)
                            _accept(
                                near, listed, starts, rows, allowed, by_code, first_row, k,
                                query, keys, counts, firm, status,
                            )  # fmt: skip
                        begin, end = end, min(2 * end, stop)
