"""Compiled inner loops: vectors of length 1, and outputs of linear hash functions."""

from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.machine_code import compiled

_SUMS = {"reassoc", "contract", "nsz"}
_SMALLEST, _LARGEST = 1e-200, 1e200
"""Sums of squares between these were neither too large nor too small on the way."""
TINY = float(np.finfo(np.float32).tiny)


@compiled(fastmath=_SUMS, no_cfunc_wrapper=True)
def scale_to_1(rows: NDArray[Any], unit: NDArray[np.float32]) -> bool:
    """Write vectors of length 1 in the same directions; return whether all have one.

    Args:
        rows: float32 or float64 (n, width).
        unit: float32 (n, width), written where there is a direction.
    """
    all_have = True
    for row in range(len(rows)):
        numbers, peak, total = rows[row], 1.0, 0.0
        for number in numbers:
            total += np.float64(number) * np.float64(number)
        if not _SMALLEST < total < _LARGEST:
            # By the largest number first: squares of large or small ones do not fit.
            peak, total = 0.0, 0.0
            for number in numbers:
                size = abs(np.float64(number))
                peak = size if not size <= peak else peak
                if not size < inf:
                    break
            if not 0 < peak < inf:
                all_have = False
                continue
            for number in numbers:
                total += (np.float64(number) / peak) ** 2
        length = sqrt(total)
        for place in range(len(numbers)):
            unit[row, place] = np.float64(numbers[place]) / peak / length
    return all_have


@compiled(fastmath=_SUMS, no_cfunc_wrapper=True)
def settle(
    outputs: NDArray[np.float32],
    unit: NDArray[np.float32],
    projection: NDArray[np.float32],
    threshold: NDArray[np.float64],
    unsure: float,
) -> None:
    """Take thresholds from products in float32, and compute again what is so near to 0 that its sign may be wrong.

    Args:
        outputs: products of vectors and projection, float32 (n, bits), written.
        unit: vectors, float32 (n, width).
        projection: float32 (width, bits).
        threshold: float64 (bits,).
        unsure: the largest number that may have the wrong sign.
    """
    for row in range(len(outputs)):
        of_row, near = outputs[row], 0
        for bit in range(len(of_row)):
            of_row[bit] -= np.float32(threshold[bit])
            near += abs(of_row[bit]) <= unsure
        if not near:
            continue
        for bit in range(len(of_row)):
            if abs(of_row[bit]) <= unsure:
                exact = -threshold[bit]
                for place in range(len(unit[row])):
                    exact += np.float64(unit[row, place]) * projection[place, bit]
                # A number that is too small for float32 keeps its sign.
                of_row[bit] = -TINY if -TINY < exact < 0 else exact


@compiled(fastmath=_SUMS, no_cfunc_wrapper=True)
def count_outside(unit: NDArray[np.float32], direction: NDArray[np.float32], least: float, most: float) -> int:
    """Count vectors, float32 (n, width), whose product with another, float32 (width,), is not between two numbers."""
    outside = 0
    for row in range(len(unit)):
        product = np.float32(0)
        for place in range(len(direction)):
            product += unit[row, place] * direction[place]
        outside += not least <= product <= most
    return outside
