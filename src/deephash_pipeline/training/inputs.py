"""Interface of training data: its length, and a batch on the device."""

from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.common.devices import to_device


class Inputs(Protocol):
    """A supply of network inputs by index.

    Example:
        >>> inputs: Inputs = ArrayInputs(np.eye(3, dtype=np.float32), torch.device("cpu"))
        >>> len(inputs)
        3
    """

    def __len__(self) -> int:
        """Number of samples."""

    def batch(self, indices: NDArray[np.int64], seed: int | None = None, first: int = 0) -> Tensor:
        """Samples at `indices` as float32 on the device.

        Args:
            indices: int64 (batch,).
            seed: asks for augmentation; None for the plain samples.
            first: number of the first of them in the whole batch. What is drawn for a sample depends on the seed and on
                its number, so that a batch in pieces is the batch.
        """


class ArrayInputs:
    """Rows of a float array, such as z of shape (samples, z_dimension).

    Example:
        >>> inputs = ArrayInputs(np.eye(3, dtype=np.float32), torch.device("cpu"))
        >>> len(inputs), inputs.batch(np.array([2, 0])).shape
        (3, torch.Size([2, 3]))
    """

    def __init__(self, array: NDArray[np.float32], device: torch.device) -> None:
        self.array = array
        self.device = device

    def __len__(self) -> int:
        return len(self.array)

    @cached_property
    def rows(self) -> Tensor:
        """All rows on the device."""
        # A copy of what may only be read, as Ray gives it: PyTorch has no such tensors, and warns.
        return torch.from_numpy(np.require(self.array, requirements=["C", "W"])).to(self.device)

    def batch(self, indices: NDArray[np.int64], seed: int | None = None, first: int = 0) -> Tensor:
        """Rows at `indices`; there is nothing to augment."""
        return self.rows[to_device(indices, self.device)]


class LabelledInputs(NamedTuple):
    """A training set as the loop takes it.

    Attributes:
        inputs: inputs of the network.
        labels: int64 of shape (samples,), or uint8 of shape (samples, classes).

    Example:
        >>> rows = ArrayInputs(np.eye(3, dtype=np.float32), torch.device("cpu"))
        >>> LabelledInputs(rows, np.array([0, 1, 1])).labels.shape
        (3,)
    """

    inputs: Inputs
    labels: NDArray[Any]
