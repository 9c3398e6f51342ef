"""From codes to their items: the last step of a search."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.kernels.keys import KEYS, ROW_BITS, ROW_MASK, sort_keys
from deephash_pipeline.hamming.kernels.nearest import KeptOfQueries, Part, is_allowed
from deephash_pipeline.hamming.kernels.vectors import fetch
from deephash_pipeline.retrieval.kernels.compiled import inner, kernel


@inner
def _merge(answers: Any, found: int, rows: Any, allowed: Any, first_row: int, spare: Any) -> int:
    """Merge the allowed rows of a code, in order, into answers[:found], in order; what does not fit is left out."""
    place = 0
    while place < len(rows) and not is_allowed(allowed, np.int64(rows[place])):
        place += 1
    if place == len(rows):
        return found
    # Codes come in the order of their first rows: what there is of later ones stands at the end.
    merged, first = found, first_row + np.int64(rows[place])
    while merged and answers[merged - 1] > first:
        merged -= 1
    read, kept = merged, found
    for later in range(read, kept):
        spare[later] = answers[later]
    while merged < len(answers):
        while place < len(rows) and not is_allowed(allowed, np.int64(rows[place])):
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


@inner
def _fetch_items(keys: Any, starts: Any, rows: Any, code_of: Any, by_code: bool, first_row: int) -> None:
    """Have what is read of the items of keys fetched, of all keys at a time: each would be waited for."""
    for step in range(int(by_code), 3):
        for key in keys:
            row = (key & ROW_MASK) - first_row
            if 0 <= row < len(code_of):
                code = row if by_code or step == 0 else np.int64(code_of[row])
                if step == 0:
                    fetch(code_of, row)
                elif step == 1:
                    fetch(starts, code)
                else:
                    fetch(rows, np.int64(starts[code]))


@kernel
def list_items(
    first_query: int,
    stop_query: int,
    part: Part,
    code_of: NDArray[np.uint32],
    stop_row: int,
    found: KeptOfQueries,
    listed: NDArray[np.int64],
    answers: NDArray[np.int64],
    distances: NDArray[np.int32],
) -> None:
    """List the items of a part that are among the nearest of some queries, after those of the parts before it.

    Args:
        first_query: the first of the queries.
        stop_query: number of the query after the last.
        part: part that was searched.
        code_of: uint32 (items,), code of every row of the part; empty if every row has its own.
        stop_row: number in the index of the row after the part's last.
        found: state of `nearest`; keys are brought into order with the first part.
        listed: int64 (queries, code_length + 1), zeros for the first part: items listed so far at each distance.
        answers: int64 (queries, number of answers), written: rows of the index.
        distances: int32 (queries, number of answers), written.
    """
    _, _, starts, rows, allowed, _, by_code, first_row = part
    keys, counts, _, status = found
    wanted = answers.shape[1]
    spare = np.empty(wanted, dtype=np.int64)
    for query in range(first_query, stop_query):
        of_query, of_keys = answers[query], keys[query]
        if first_row == 0:
            sort_keys(wanted, of_keys, counts[query], status[query])
        _fetch_items(of_keys[: status[query, KEYS]], starts, rows, code_of, by_code, first_row)
        place, start = 0, 0
        while place < status[query, KEYS] and start < wanted:
            distance = of_keys[place] >> ROW_BITS
            stop = min(start + counts[query, distance], wanted)
            first, taken = start + listed[query, distance], np.int64(0)
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
                if single and (taken == 0 or of_query[first + taken - 1] < row):
                    if first + taken < stop:
                        of_query[first + taken] = row
                        taken += 1
                elif first < stop:
                    taken = _merge(of_query[first:stop], taken, rows[begin:end], allowed, first_row, spare)
            listed[query, distance] += taken
            distances[query, start:stop] = distance
            start = stop
