"""Features above their medians."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hashing.rows import Ints
from deephash_pipeline.hashing.sign import Sign


class Median(Sign):
    """Bit k of a row is 1 where feature k is at least its median in the training set: every bit is balanced.

    Where many values are the median, as 0 is after a ReLU, the bit is 1 above them if that halves the set more evenly.

    Args:
        code_length: number of bits per code, 1 to D.
        random_state: ignored; nothing is drawn.

    Example:
        >>> Median(code_length=2).fit([[1.0, 0.0], [3.0, 0.0], [5.0, 9.0]]).transform([[3.5, -1.0]]).tolist()
        [[True, False]]
    """

    display_name = "Medians of features"
    reference = (
        "Zhang, Wang, Cai & Lu, Self-taught hashing for fast similarity search, SIGIR 2010, doi:10.1145/1835449.1835455"
    )

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        medians = np.median(z, axis=0).astype(np.float64)
        greater = z > medians
        above = np.where(greater, z, np.inf).min(axis=0)
        # The share of rows above the median is nearer to one half than that of rows at or above it.
        strictly = np.isfinite(above) & (greater.mean(axis=0) + (z >= medians).mean(axis=0) > 1)
        return {"threshold": np.where(strictly, medians + (above - medians) / 2, medians)}
