"""What the loop asks of its data: how many, and a batch on the device."""

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Inputs(Protocol):
    """A supply of network inputs by index."""

    def __len__(self) -> int:
        """Number of samples."""

    def batch(self, indices: NDArray[np.int64], seed: int | None = None) -> Tensor:
        """Samples at `indices` as float32 on the device; a seed asks for augmentation, None for the plain samples."""


class ArrayInputs:
    """Rows of a float array, such as z of shape (samples, z_dimension)."""

    def __init__(self, array: NDArray[np.float32], device: torch.device) -> None:
        self.rows = torch.from_numpy(np.ascontiguousarray(array)).to(device)

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, indices: NDArray[np.int64], seed: int | None = None) -> Tensor:
        """Rows at `indices`; there is nothing to augment."""
        return self.rows[torch.from_numpy(indices).to(self.rows.device)]
