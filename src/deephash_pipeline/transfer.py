"""Batches on their way to a device, without the processor waiting for what the device still has to do."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def to_device(array: NDArray[Any] | Tensor, device: torch.device) -> Tensor:
    """Return an array or a CPU tensor as a tensor on a device; on the CPU it shares its memory.

    A copy from ordinary memory to a CUDA device waits until the device is idle; one from pinned memory takes its turn
    in the device's queue. Not for whole data sets: pinned memory is not given back.
    """
    tensor = array if isinstance(array, Tensor) else torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
