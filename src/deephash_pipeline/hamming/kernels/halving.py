"""Values are found among many that are in order, by halving."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.retrieval.kernels.compiled import kernel


def places_in_order(values: NDArray[Any], order: NDArray[np.uint32], wanted: NDArray[Any]) -> NDArray[np.int64]:
    """Where values belong among others in order: int64, how many of those are less than each.

    Args:
        values: int64 or uint64 (items,).
        order: uint32 (items,), the rows of values, ascending.
        wanted: numbers of the type of values, int64 or uint64 (n,).

    Example:
        >>> places_in_order(np.array([30, 10, 20]), np.array([1, 2, 0], dtype=np.uint32), np.array([5, 20, 99]))
        array([0, 1, 3])
    """
    places = np.empty(len(wanted), dtype=np.int64)
    _find_places(values, order, wanted, places)
    return places


@kernel
def _find_places(values: Any, order: Any, wanted: Any, places: Any) -> None:
    for number in range(len(wanted)):
        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            if values[order[middle]] < wanted[number]:
                low = middle + 1
            else:
                high = middle
        places[number] = low
