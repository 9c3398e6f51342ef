"""Inputs in double precision, in which rounding cannot move a training onto another path."""

import numpy as np
from torch import Tensor

from deephash_pipeline.training import Inputs


class DoubleInputs:
    """Inputs in double precision."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs

    def __len__(self) -> int:
        return len(self.inputs)

    def batch(self, indices: np.ndarray, seed: int | None = None, first: int = 0) -> Tensor:
        return self.inputs.batch(indices, seed, first).double()
