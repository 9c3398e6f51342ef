"""What metrics share: the check of a rank, ratios without a denominator, and means over the queries that count."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError


def check_rank(k: int) -> int:
    """Return k as a plain `int`; raise InputError unless it is a whole number of at least 1.

    Example:
        >>> check_rank(np.int64(1000))
        1000
    """
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise InputError(f"k is {k!r}; give a whole number of items of at least 1.")
    return int(k)


def mean_of_evaluated(values: NDArray[np.float64] | NDArray[np.bool_], evaluated: NDArray[np.bool_]) -> float:
    """Mean over the queries marked in `evaluated`, bool (queries,); nan if there are none.

    Example:
        >>> mean_of_evaluated(np.array([0.5, np.nan, 1.0]), np.array([True, False, True]))
        0.75
    """
    return float(values[evaluated].mean()) if evaluated.any() else float("nan")


def ratio(counts: NDArray[Any], total: NDArray[Any], if_empty: float) -> NDArray[np.float64]:
    """Divide elementwise; where the total is not positive the ratio is `if_empty`.

    Example:
        >>> ratio(np.array([1, 2]), np.array([4, 0]), if_empty=0.0)
        array([0.25, 0.  ])
    """
    quotient: NDArray[np.float64] = np.full(np.broadcast_shapes(counts.shape, total.shape), if_empty)
    np.divide(counts, total, out=quotient, where=total > 0)
    return quotient
