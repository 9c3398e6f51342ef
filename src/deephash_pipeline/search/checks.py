"""Checks of arguments."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError


def checked_count(count: Any, name: str, least: int = 1) -> int:
    """A number of things as a plain `int`.

    Raises:
        InputError: if it is not a whole number, or less than `least`.

    Example:
        >>> checked_count(np.int64(10), "k")
        10
    """
    if isinstance(count, bool) or not isinstance(count, Integral) or count < least:
        raise InputError(f"{name} is {count!r}; give a whole number from {least} on.")
    return int(count)


def checked_numbers(numbers: Any, items: int, width: int, name: str) -> NDArray[np.float32]:
    """Bring real numbers into float32 (items, width).

    Raises:
        InputError: if they have another shape, are no numbers, or not finite.

    Example:
        >>> checked_numbers([[1, 2]], items=1, width=2, name="features")
        array([[1., 2.]], dtype=float32)
    """
    array = np.asarray(numbers)
    if array.dtype.kind not in "fiu" or array.shape != (items, width):
        raise InputError(
            f"{name} is {array.dtype} of shape {array.shape}; give real numbers of shape ({items}, {width})."
        )
    real = array.astype(np.float32)
    if not np.isfinite(real).all():
        raise InputError(f"{name} has a number that is not finite; remove that item.")
    return real
