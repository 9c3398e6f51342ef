"""Layers of small networks as loops that numba compiles: one thread of a CPU, channels last, float32 or bfloat16.

PyTorch has no number of bfloat16 that NumPy knows, so they come as int16, the upper halves of float32.
"""

from typing import Any

import numpy as np
import torch
from numba import njit, types
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
        and responses.is_contiguous(memory_format=torch.channels_last)
    )


def pixels(responses: Tensor) -> NDArray[Any]:
    """View a tensor in `channels_last` as an array of shape (batch, height, width, channels)."""
    return responses.detach().permute(0, 2, 3, 1).view(SEEN_AS.get(responses.dtype, responses.dtype)).numpy()


def widened(value: Any) -> Any:
    """Return a number of float32 from one of either kind."""
    raise NotImplementedError("for compiled code")


def narrowed(value: Any, like: Any) -> Any:
    """Return a number of the kind of `like` from one of float32, rounded to nearest, ties to even."""
    raise NotImplementedError("for compiled code")


@overload(widened, inline="always", strict=False)
def _widened(value: Any) -> Any:
    if value == types.int16:
        return lambda value: np.int32(np.int32(value) << np.int32(16)).view(np.float32)
    return lambda value: value


@overload(narrowed, inline="always", strict=False)
def _narrowed(value: Any, like: Any) -> Any:
    if like != types.int16:
        return lambda value, like: value

    def rounded(value: Any, like: Any) -> Any:
        bits = np.float32(value).view(np.int32)
        last = np.int32(bits >> np.int32(16)) & np.int32(1)
        half = np.int32(bits + np.int32(0x7FFF) + np.int32(last)) >> np.int32(16)
        return np.int16(0x7FC0) if np.isnan(value) else np.int16(half)

    return rounded


# Rows of pixels go through buffers, for channels alone are too few for loops over vectors.


@njit(cache=True, nogil=True, error_model="numpy")
def take_maxima(windows: Any, pooled: Any, places: Any) -> None:
    """Find the first maximum of each window, or its last NaN, as PyTorch does."""
    rows, side, columns, _, channels = windows.shape
    size = columns * channels
    here, best, place = np.empty(size, np.float32), np.empty(size, np.float32), np.empty(size, np.uint8)
    for row in range(rows):
        for down in range(side):
            for right in range(side):
                for column in range(columns):
                    for channel in range(channels):
                        here[column * channels + channel] = widened(windows[row, down, column, right, channel])
                this = np.uint8(down * side + right)
                for i in range(size):
                    better = (this == 0) | (here[i] > best[i]) | np.isnan(here[i])
                    best[i] = here[i] if better else best[i]
                    place[i] = this if better else place[i]
        for i in range(size):
            pooled[row, i] = narrowed(best[i], pooled[row, i])
            places[row, i] = place[i]


@njit(cache=True, nogil=True, error_model="numpy")
def put_at_maxima(gradient: Any, places: Any, windows: Any) -> None:
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


@njit(cache=True, nogil=True, error_model="numpy")
def normalise(responses: Any, normalised: Any, inverse_roots: Any, window: Any) -> None:
    """Divide by s^(3/4), s = 1 + weight times the sum of squares of a window within the channel.

    Args:
        responses: shape (batch, height, width, channels).
        normalised: what the result is written to, of the same shape.
        inverse_roots: what 1 / sqrt(s) is written to, of the same shape, float32.
        window: pixels from its centre to its border, and the weight, float32.
    """
    batch, height, width, channels = responses.shape
    reach, weight = window
    size = width * channels
    responses, inverse_roots = responses.reshape(batch, height, size), inverse_roots.reshape(batch, height, size)
    normalised = normalised.reshape(batch, height, size)
    one = np.float32(1)
    squares, sums = np.empty((height, size), np.float32), np.empty((2, size), np.float32)
    for image in range(batch):
        for row in range(height):
            for i in range(size):
                x = widened(responses[image, row, i])
                squares[row, i] = x * x
        for row in range(height):
            _sum_windows(squares, row, channels, reach, sums)
            for i in range(size):
                root = one / np.sqrt(sums[1, i] * weight + one)
                inverse_roots[image, row, i] = root
                x = widened(responses[image, row, i])
                normalised[image, row, i] = narrowed(one / np.sqrt(root) * root * root * x, normalised[image, row, i])


@njit(cache=True, nogil=True, error_model="numpy")
def differentiate(responses: Any, inverse_roots: Any, gradient: Any, result: Any, window: Any) -> None:
    """Write the gradient by the responses of `normalise`; the window's weight is -2 beta times what it was there."""
    batch, height, width, channels = responses.shape
    reach, weight = window
    size = width * channels
    responses, inverse_roots = responses.reshape(batch, height, size), inverse_roots.reshape(batch, height, size)
    gradient, result = gradient.reshape(batch, height, size), result.reshape(batch, height, size)
    one = np.float32(1)
    direct, passed = np.empty((height, size), np.float32), np.empty((height, size), np.float32)
    sums = np.empty((2, size), np.float32)
    for image in range(batch):
        for row in range(height):
            for i in range(size):
                root = inverse_roots[image, row, i]
                direct[row, i] = one / np.sqrt(root) * root * root * widened(gradient[image, row, i])
                passed[row, i] = direct[row, i] * widened(responses[image, row, i]) * root * root
        for row in range(height):
            _sum_windows(passed, row, channels, reach, sums)
            for i in range(size):
                x = widened(responses[image, row, i])
                result[image, row, i] = narrowed(sums[1, i] * x * weight + direct[row, i], result[image, row, i])


@njit(inline="always", error_model="numpy")
def _sum_windows(values: Any, row: int, channels: int, reach: int, sums: Any) -> None:
    """Sum down the columns and then along the row, as `normalisation.window_sum` does; `sums[1]` is the result."""
    height, size = values.shape
    below, total = sums[0], sums[1]
    for i in range(size):
        below[i] = values[row, i]
    for shift in range(1, reach + 1):
        if shift <= row:
            for i in range(size):
                below[i] += values[row - shift, i]
        if shift < height - row:
            for i in range(size):
                below[i] += values[row + shift, i]
    for i in range(size):
        total[i] = below[i]
    for distance in range(channels, reach * channels + 1, channels):
        for i in range(distance, size):
            total[i] += below[i - distance]
        for i in range(size - distance):
            total[i] += below[i + distance]
