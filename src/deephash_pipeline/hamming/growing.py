"""Arrays that rows are appended to, while others read the rows that there were."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FEWEST_ROWS = 64


def with_room(array: NDArray[Any], used: int, wanted: int, axis: int = 0) -> NDArray[Any]:
    """An array that begins with what is in use of another: that one itself, where it has room for more.

    Args:
        array: array that has rows along an axis.
        used: number of rows in use.
        wanted: number of rows that there is to be room for.
        axis: the axis.
    """
    if wanted <= array.shape[axis]:
        return array
    shape, place = list(array.shape), (*[slice(None)] * axis, slice(used))
    shape[axis] = max(FEWEST_ROWS, 2 * wanted)
    # Whoever has the former array keeps it.
    grown = np.empty(shape, dtype=array.dtype)
    grown[place] = array[place]
    return grown
