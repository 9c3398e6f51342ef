"""Features above their medians."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hashing.rows import Ints
from deephash_pipeline.hashing.sign import Sign


class Median(Sign):
    """Bit k of a row is 1 if and only if feature k is at least its median in the training set: every bit is balanced.

    Args:
        code_length: number of bits per code, 1 to D.
        random_state: ignored; nothing is drawn.

    Example:
        >>> Median(code_length=2).fit([[1.0, 0.0], [3.0, 0.0], [5.0, 9.0]]).transform([[3.5, -1.0]]).tolist()
        [[True, False]]
    """

    display_name = "Medians of features"
    reference = "Zhang, Wang, Cai & Lu, Self-taught hashing for fast similarity search, SIGIR 2010"

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        return {"threshold": np.median(z, axis=0)}
