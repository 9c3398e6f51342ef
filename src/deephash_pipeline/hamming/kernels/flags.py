"""Conditions: flags of items by the numbers of their values."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.machine_code import compiled


@compiled()
def look_up(codes: NDArray[Any], wanted: NDArray[np.bool_], flags: NDArray[np.bool_]) -> None:
    """Write wanted[codes]; NumPy would first convert the codes.

    Args:
        codes: unsigned (items,).
        wanted: bool (largest code + 1,).
        flags: bool (items,), written.
    """
    for item in range(len(codes)):
        flags[item] = wanted[codes[item]]
