"""Differences of harmonic numbers, as accurate for the millionth item as for the first.

Subtracting two entries of a table loses digits where the difference is small against H(n). In the expansion of H(n) by
1/(n + 1/2) the leading term of a difference is the logarithm of one ratio, which loses none and needs no long table.
"""

import numpy as np
from numpy.typing import NDArray

# From here on three terms of the expansion are accurate to the last digit; the numbers before are summed one by one.
TABULATED = 64
_TERMS = np.arange(1, TABULATED + 1)
_STARTS = np.arange(TABULATED + 1)[:, None]
# [a, b] = 1/(a + 1) + ... + 1/b
_SHORT_SUMS = np.zeros((TABULATED + 1, TABULATED + 1))
_SHORT_SUMS[:, 1:] = np.cumsum(np.where(_STARTS < _TERMS, 1 / _TERMS, 0.0), axis=1)


def harmonic_difference(start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum of 1/t over t = start + 1 .. stop, elementwise for 0 <= start <= stop, relative error about 1e-15.

    Uses H(n) = gamma + log(x) + 1/(24 x^2) - 7/(960 x^4) + 31/(8064 x^6) - ... with x = n + 1/2, the series of the
    digamma function at half-integers.

    Returns:
        float64 of the shape of the arguments.

    Example:
        >>> harmonic_difference(np.array([0, 1]), np.array([2, 4])).round(4)
        array([1.5   , 1.0833])
    """
    short = _SHORT_SUMS[np.minimum(start, TABULATED), np.minimum(stop, TABULATED)]
    low = np.maximum(start, TABULATED) + 0.5
    high = np.maximum(stop, TABULATED) + 0.5
    difference: NDArray[np.float64] = short + np.log1p((high - low) / low) + (_corrections(high) - _corrections(low))
    return difference


def _corrections(x: NDArray[np.float64]) -> NDArray[np.float64]:
    square = 1 / (x * x)
    corrections: NDArray[np.float64] = square * (1 / 24 - square * (7 / 960 - square * (31 / 8064)))
    return corrections
