"""A rotation of vectors that looks random and takes microseconds: signs, Hadamard matrices and sums of pairs.

Few large numbers among small ones become numbers that are nearly normal and alike, so that small steps hold them all.
After four rounds the largest is as large as after a rotation that was drawn at random, within a few hundredths (Ailon
and Chazelle, "The fast Johnson-Lindenstrauss transform", SIAM J. Comput. 2009).
"""

import hashlib
from functools import cache
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.retrieval.kernels.compiled import inner, kernel

ROUNDS, AT_A_TIME = 4, 8
ROOT_OF_HALF = np.float32(sqrt(0.5))


def rotated(rows: NDArray[np.float32], back: bool = False) -> NDArray[np.float32]:
    """Vectors, float32 (n, width), after the rotation of their width, or what they were before it.

    Example:
        >>> rows = np.array([[3, 0, 0], [0, 4, 0]], dtype=np.float32)
        >>> np.linalg.norm(rotated(rows), axis=1).round(5)
        array([3., 4.], dtype=float32)
        >>> np.allclose(rotated(rotated(rows), back=True), rows, atol=1e-6)
        True
    """
    copied = np.array(rows, dtype=np.float32, order="C")
    if copied.size:
        _rotate(copied, *_plan(copied.shape[1]), back)
    return copied


@cache
def _plan(width: int) -> tuple[NDArray[np.float32], int]:
    """The signs of each round, float32 (ROUNDS, width), by the root of the size of its matrix; and that size.

    They are bits of a digest, and so the same everywhere.
    """
    digest = hashlib.shake_256(b"signs of a rotation").digest(-(-ROUNDS * width // 8))
    bits = np.unpackbits(np.frombuffer(digest, dtype=np.uint8), count=ROUNDS * width).reshape(ROUNDS, width)
    signs, size = np.where(bits, np.float32(-1), np.float32(1)), 1 << width.bit_length() - 1
    signs[::2, :size] /= np.float32(sqrt(size))
    signs[1::2, width - size :] /= np.float32(sqrt(size))
    return signs, size


@inner
def _mix_eights(numbers: Any) -> None:
    """Do the first three steps of `_mix`, eight numbers at a time: as a loop they take three times as long."""
    for at in range(0, len(numbers), AT_A_TIME):
        a, b, c, d = numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]
        e, f, g, h = numbers[at + 4], numbers[at + 5], numbers[at + 6], numbers[at + 7]
        a, b, c, d, e, f, g, h = a + b, a - b, c + d, c - d, e + f, e - f, g + h, g - h
        a, b, c, d, e, f, g, h = a + c, b + d, a - c, b - d, e + g, f + h, e - g, f - h
        numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3] = a + e, b + f, c + g, d + h
        numbers[at + 4], numbers[at + 5], numbers[at + 6], numbers[at + 7] = a - e, b - f, c - g, d - h


@inner
def _mix(numbers: Any) -> None:
    """Multiply numbers, a power of two, by the Hadamard matrix of their size."""
    apart = 1
    if len(numbers) >= AT_A_TIME:
        _mix_eights(numbers)
        apart = AT_A_TIME
    while apart < len(numbers):
        for first in range(0, len(numbers), 2 * apart):
            upper, lower = numbers[first : first + apart], numbers[first + apart : first + 2 * apart]
            for place in range(apart):
                total, difference = upper[place] + lower[place], upper[place] - lower[place]
                upper[place], lower[place] = total, difference
        apart *= 2


@inner
def _add_pairs(row: Any) -> None:
    """Turn each pair of a number of the first half and one of the second by an eighth of a circle, and mirror it."""
    half = len(row) // 2
    for place in range(half):
        upper, lower = row[place], row[half + place]
        row[place], row[half + place] = (upper + lower) * ROOT_OF_HALF, (upper - lower) * ROOT_OF_HALF


@kernel
def _rotate(rows: Any, signs: Any, size: int, back: bool) -> None:
    """Rotate rows where they are: in each round signs, a matrix over the first or the last numbers, pairs; or back."""
    width = rows.shape[1]
    for row in rows:
        for step in range(len(signs)):
            number = len(signs) - 1 - step if back else step
            first = (width - size) * (number % 2)
            if back:
                _add_pairs(row)
                _mix(row[first : first + size])
            for place in range(width):
                row[place] *= signs[number, place]
            if not back:
                _mix(row[first : first + size])
                _add_pairs(row)
