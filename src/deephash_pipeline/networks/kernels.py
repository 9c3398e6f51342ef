"""Parts of layers that numba compiles: one thread of a CPU, channels last, float32 or bfloat16.

PyTorch has no number of bfloat16 that NumPy knows, so they come as int16, the upper halves of float32.

Kernels copy rows of pixels to buffers, for channels alone are too few for loops over vectors. What lies a distance away
is a view of its own: a loop with an index that might be negative is none over vectors, and takes ten times as long.
"""

from typing import Any

import numpy as np
import torch
from numba import types
from numba.extending import overload
from numpy.typing import NDArray
from torch import Tensor

SEEN_AS = {torch.bfloat16: torch.int16, torch.float32: torch.float32}


def covered(responses: Tensor) -> bool:
    """Say whether responses of shape (batch, channels, height, width) may go to these kernels."""
    return (
        # A graph that is written down can have no call of compiled Python; and PyTorch's layers use all threads.
        not (torch.compiler.is_compiling() or torch.onnx.is_in_onnx_export())
        and torch.get_num_threads() == 1
        and responses.device.type == "cpu"
        and responses.dtype in SEEN_AS
        and responses.numel() > 0
        and responses.is_contiguous(memory_format=torch.channels_last)
    )


def pixels(responses: Tensor) -> NDArray[Any]:
    """View a tensor in `channels_last` as an array of shape (batch, height, width, channels)."""
    return responses.detach().permute(0, 2, 3, 1).view(SEEN_AS.get(responses.dtype, responses.dtype)).numpy()


def as_float32(value: Any) -> Any:
    """Return a number of float32 from one of either kind."""
    raise NotImplementedError("for compiled code")


def narrowed(value: Any, like: Any) -> Any:
    """Return a number of the kind of `like` from one of float32, rounded to nearest, ties to even."""
    raise NotImplementedError("for compiled code")


@overload(as_float32, inline="always", strict=False)
def _widened(value: Any) -> Any:
    if value == types.int16:
        return lambda value: np.int32(np.int32(value) << np.int32(16)).view(np.float32)
    return lambda value: value


@overload(narrowed, strict=False)
def _narrowed(value: Any, like: Any) -> Any:
    if like != types.int16:
        return lambda value, like: value

    def rounded(value: Any, like: Any) -> Any:
        bits = np.float32(value).view(np.int32)
        last = np.int32(bits >> np.int32(16)) & np.int32(1)
        half = np.int32(bits + np.int32(0x7FFF) + np.int32(last)) >> np.int32(16)
        return np.int16(0x7FC0) if np.isnan(value) else np.int16(half)

    return rounded
