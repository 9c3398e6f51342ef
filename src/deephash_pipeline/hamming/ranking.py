"""Rows of an index by distance from a query: which kernel to use, in how many pieces, on how many threads."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.codes import Codes
from deephash_pipeline.hamming.growing import with_room
from deephash_pipeline.hamming.kernels.items import list_items
from deephash_pipeline.hamming.kernels.keys import ROW_BITS, ROW_MASK, STATUS
from deephash_pipeline.hamming.kernels.nearest import KeptOfQueries, Part, scan_part, slice_part
from deephash_pipeline.hamming.kernels.sliced import working_memory
from deephash_pipeline.hamming.kernels.within import (
    FIRST,
    ITEMS,
    NEXT_QUERY,
    PROGRESS,
    QUERY,
    WANTED,
    List,
    deal,
    scan_within,
    slice_within,
)
from deephash_pipeline.retrieval.kernels.compiled import in_threads, threads_to_use

Engine = Literal["auto", "scan", "sliced"]

# From so many queries to a thread on, the bit-sliced comparison gains more than its tables cost.
SLICED_QUERIES = 24
# Of fewer codes, the tables of a block cost more than a scan.
SLICED_CODES = 512
# Memory for the keys and counts of the queries that are answered at a time.
NUMBERS_AT_ONCE = 1 << 23
SPARE_KEYS = 512
# Items that the list of a search within a radius has room for at first.
FIRST_ROOM = 1 << 14
# For so many queries, codes are copied and searched alone where at most half of the rows may be found.
COPYING_QUERIES = 32


def nearest_rows(
    queries: NDArray[np.uint64], parts: Sequence[Codes], code_length: int, k: int, engine: Engine = "auto"
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Find the k nearest rows of every query, exactly, in the order of (distance, row).

    Args:
        queries: codes, uint64 (queries, words).
        parts: parts to search, in the order of their rows.
        code_length: bits per code, 1..4096.
        k: number of rows to find, at least 1.
        engine: "scan" compares code by code, "sliced" bit by bit (of 512 and more); "auto" chooses.

    Returns:
        Rows, int64, and distances, int32, both of shape (queries, min(k, rows that may be found)).

    Example:
        >>> from deephash_pipeline.hamming.codes import group_codes
        >>> part = group_codes(np.array([[0, 1, 7]], dtype=np.uint64))
        >>> queries = np.zeros((1, 1), dtype=np.uint64)
        >>> nearest_rows(queries, [part], code_length=8, k=2)
        (array([[0, 1]]), array([[0, 1]], dtype=int32))
    """
    wanted = min(k, sum(part.allowed_count for part in parts))
    if not wanted or not len(queries):
        shape = (len(queries), wanted)
        return np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int32)
    threads = _threads_of(len(queries))
    sliced = engine == "sliced" or (engine == "auto" and len(queries) >= SLICED_QUERIES * threads)
    rows = np.empty((len(queries), wanted), dtype=np.int64)
    distances = np.empty((len(queries), wanted), dtype=np.int32)
    at_once = max(threads, NUMBERS_AT_ONCE // (_room_for(wanted) + 3 * (code_length + 1)))
    for start in range(0, len(queries), at_once):
        some = slice(start, start + at_once)
        _nearest_of_some(queries[some], parts, code_length, sliced, (rows[some], distances[some]))
    return rows, distances


def _room_for(wanted: int) -> int:
    return 3 * wanted + SPARE_KEYS


def _nearest_of_some(
    queries: NDArray[np.uint64],
    parts: Sequence[Codes],
    code_length: int,
    sliced: bool,
    answers: tuple[NDArray[np.int64], NDArray[np.int32]],
) -> None:
    """Fill answers: rows and distances, both (queries, wanted)."""
    rows, distances = answers
    wanted = rows.shape[1]
    keys = np.empty((len(queries), _room_for(wanted)), dtype=np.int64)
    counts, firm, listed = np.zeros((3, len(queries), code_length + 1), dtype=np.int64)
    status = np.zeros((len(queries), STATUS), dtype=np.int64)
    status[:, 0] = code_length
    searched = [_with_rare_rows_alone(part, len(queries)) for part in parts if part.size]
    found: KeptOfQueries = (keys, counts, firm, status)

    def answer(first: int, stop: int) -> None:
        working = working_memory(queries[first:stop], code_length) if sliced else None
        for part in searched:
            if working and part.distinct >= SLICED_CODES:
                slice_part(first, stop, queries, _for_kernels(part), code_length, wanted, found, working)
            elif part.distinct:
                scan_part(first, stop, queries, _for_kernels(part), wanted, found)
        for part in searched:
            last = part.first_row + part.size
            list_items(first, stop, _for_kernels(part), part.code_of, last, found, listed, rows, distances)

    _on_all_threads(answer, len(queries))


def rows_within(
    queries: NDArray[np.uint64], parts: Sequence[Codes], code_length: int, radius: int, engine: Engine = "auto"
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Find all rows at most `radius` from each query, in the order of (distance, row).

    Args:
        queries: codes, uint64 (queries, words).
        parts: parts to search, in the order of their rows.
        code_length: bits per code, 1..4096.
        radius: the largest distance that counts, 0..4096.
        engine: see `nearest_rows`.

    Returns:
        Starts, int64 (queries + 1,), rows, int64, and distances, int32: those of query `q` are
        rows[starts[q] : starts[q + 1]].

    Example:
        >>> from deephash_pipeline.hamming.codes import group_codes
        >>> part = group_codes(np.array([[0, 1, 7]], dtype=np.uint64))
        >>> queries = np.zeros((1, 1), dtype=np.uint64)
        >>> rows_within(queries, [part], code_length=8, radius=1)
        (array([0, 2]), array([0, 1]), array([0, 1], dtype=int32))
    """
    threads = _threads_of(len(queries))
    sliced = engine == "sliced" or (engine == "auto" and len(queries) >= SLICED_QUERIES * threads)
    sought = _Sought(queries, parts, code_length, min(radius, code_length), sliced)
    lists: list[List] = []

    def walk(first: int, stop: int) -> None:
        lists.append(_list_within(first, stop, sought))

    _on_all_threads(walk, len(queries))
    counts = sum((np.bincount(owners, minlength=len(queries)) for _, owners in lists), np.zeros(len(queries), np.int64))
    starts = np.concatenate(([0], np.cumsum(counts)))
    keys, ends = np.empty(starts[-1], dtype=np.int64), starts[:-1].copy()
    for found in lists:
        deal(found, ends, keys)
    for start, stop in pairwise(starts.tolist()):
        keys[start:stop].sort()
    return starts, keys & ROW_MASK, (keys >> ROW_BITS).astype(np.int32)


class _Sought(NamedTuple):
    """What is sought within a radius, and how."""

    queries: NDArray[np.uint64]
    parts: Sequence[Codes]
    code_length: int
    radius: int
    sliced: bool


def _list_within(first: int, stop: int, sought: _Sought) -> List:
    """List what queries first..stop find, in no order, in a list that grows."""
    queries, parts, code_length, radius, sliced = sought
    found: List = (np.empty(FIRST_ROOM, dtype=np.int64), np.empty(FIRST_ROOM, dtype=np.int32))
    progress = np.zeros(PROGRESS, dtype=np.int64)
    working = working_memory(queries[first:stop], code_length) if sliced else None
    for part in (part for part in parts if part.distinct):
        by_bits = working is not None and part.distinct >= SLICED_CODES
        progress[QUERY], progress[FIRST], progress[NEXT_QUERY] = first, 0, 0 if by_bits else first
        while not (
            slice_within(first, stop, _for_kernels(part), code_length, radius, found, progress, working)
            if by_bits
            else scan_within(stop, queries, _for_kernels(part), radius, found, progress)
        ):
            keys, owners = (with_room(array, progress[ITEMS], int(progress[WANTED])) for array in found)
            found = (keys, owners)
    keys, owners = found
    return keys[: progress[ITEMS]], owners[: progress[ITEMS]]


def _for_kernels(part: Codes) -> Part:
    of_use = part.codes_of_use
    return part.words, part.distinct, part.starts, part.rows, part.allowed, of_use, part.by_code, part.first_row


def _with_rare_rows_alone(part: Codes, queries: int) -> Codes:
    """Replace a part of which few rows may be found by a copy of those, if that takes less than to pass over others."""
    many = 2 * part.allowed_count > part.distinct
    if many or queries < COPYING_QUERIES or not part.size or not len(part.allowed):
        return part
    rows = part.allowed_rows()
    starts = np.arange(len(rows) + 1, dtype=np.uint32)
    words, few = part.words_of(rows), rows.astype(np.uint32)
    return Codes(words, len(rows), part.size, starts, few, first_row=part.first_row)


def _threads_of(queries: int) -> int:
    # To ask takes as long as to scan thousands of codes.
    return queries if queries < 2 else min(queries, threads_to_use())


def _on_all_threads(work: Callable[[int, int], None], queries: int) -> None:
    """Call work(start, stop) for one range of queries on each thread: a thread turns every block into a table once."""
    threads = _threads_of(queries)
    if threads == 1:
        work(0, queries)
    elif threads:
        in_threads(lambda start, stop: work(start * queries // threads, stop * queries // threads), threads)
