"""Equal codes are stored once, with the list of their items."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.retrieval.kernels.compiled import inner, kernel

_FACTOR = np.uint64(0x9E37_79B9_7F4A_7C15)
_HALF = np.uint64(32)


@inner
def _slot(words: Any, row: int, mask: Any) -> Any:
    """Where the search for a code begins, in a table of mask + 1 slots."""
    mixed = np.uint64(0)
    for word in range(words.shape[0]):
        mixed = (mixed ^ words[word, row]) * _FACTOR
        mixed ^= mixed >> _HALF
    return (mixed * _FACTOR >> _HALF) & mask


@kernel
def number_codes(words: NDArray[np.uint64], code_of: NDArray[np.uint32], first_rows: NDArray[np.uint32]) -> int:
    """Number the different codes among words (words, rows) in the order of their first rows; return how many.

    Args:
        words: codes, uint64 (words, rows), fewer than 2^32 of them.
        code_of: uint32 (rows,), written: number of each row's code.
        first_rows: uint32 (rows,), written: the first row of each code.
    """
    rows = words.shape[1]
    slots = 64
    while slots < 2 * rows:
        slots *= 2
    table, mask = np.zeros(slots, dtype=np.uint32), np.uint64(slots - 1)
    codes = 0
    for row in range(rows):
        slot = _slot(words, row, mask)
        while True:
            # Slots have numbers from 1 on, 0 is an empty one.
            number = np.int64(table[slot])
            if number == 0:
                table[slot] = codes + 1
                code_of[row], first_rows[codes] = codes, row
                codes += 1
                break
            equal = True
            for word in range(words.shape[0]):
                equal = equal and words[word, row] == words[word, first_rows[number - 1]]
            if equal:
                code_of[row] = number - 1
                break
            slot = (slot + np.uint64(1)) & mask
    return codes


@kernel
def list_rows(code_of: NDArray[np.uint32], starts: NDArray[np.uint32], rows: NDArray[np.uint32]) -> None:
    """List the rows of every code: rows[starts[c] : starts[c + 1]], in order.

    Args:
        code_of: uint32 (rows,), see `number_codes`.
        starts: uint32 (codes + 1,) of zeros, written.
        rows: uint32 (rows,), written.
    """
    codes = len(starts) - 1
    for row in range(len(code_of)):
        starts[code_of[row] + np.uint32(1)] += np.uint32(1)
    for code in range(codes):
        starts[code + 1] += starts[code]
    place = starts[:codes].copy()
    for row in range(len(code_of)):
        rows[place[code_of[row]]] = row
        place[code_of[row]] += np.uint32(1)


@kernel
def mark_codes(starts: NDArray[np.uint32], rows: NDArray[np.uint32], allowed: Any, of_use: NDArray[np.uint64]) -> None:
    """Mark the codes that have a row that is allowed.

    Args:
        starts: starts of `list_rows`.
        rows: rows of `list_rows`.
        allowed: bitmap of rows, uint64.
        of_use: bitmap of codes, uint64 zeros, written.
    """
    for code in range(len(starts) - 1):
        for place in range(np.int64(starts[code]), np.int64(starts[code + 1])):
            row = np.int64(rows[place])
            if (allowed[row >> 6] >> np.uint64(row & 63)) & np.uint64(1):
                of_use[code >> 6] |= np.uint64(1) << np.uint64(code & 63)
                break
