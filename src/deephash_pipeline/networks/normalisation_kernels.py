"""Response normalisation as loops that numba compiles; see `kernels`."""

from typing import Any

import numpy as np
from numba import njit

from deephash_pipeline.common.machine_code import compiled
from deephash_pipeline.networks.kernels import as_float32, narrowed


@compiled(error_model="numpy")
def normalise(responses: Any, normalised: Any, inverse_roots: Any, window: Any) -> None:
    """Divide by s^(3/4), s = 1 + weight times the sum of squares of a window within the channel.

    Args:
        responses: shape (batch, height, width, channels).
        normalised: array that the result is written to, of the same shape.
        inverse_roots: array that 1 / sqrt(s) is written to, of the same shape, float32.
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
                x = as_float32(responses[image, row, i])
                squares[row, i] = x * x
        for row in range(height):
            _sum_windows(squares, row, channels, reach, sums)
            for i in range(size):
                root = one / np.sqrt(sums[1, i] * weight + one)
                inverse_roots[image, row, i] = root
                x = as_float32(responses[image, row, i])
                normalised[image, row, i] = narrowed(one / np.sqrt(root) * root * root * x, normalised[image, row, i])


@compiled(error_model="numpy")
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
                direct[row, i] = one / np.sqrt(root) * root * root * as_float32(gradient[image, row, i])
                passed[row, i] = direct[row, i] * as_float32(responses[image, row, i]) * root * root
        for row in range(height):
            _sum_windows(passed, row, channels, reach, sums)
            for i in range(size):
                x = as_float32(responses[image, row, i])
                result[image, row, i] = narrowed(sums[1, i] * x * weight + direct[row, i], result[image, row, i])


@njit(inline="always", error_model="numpy")
def _sum_windows(values: Any, row: int, channels: int, reach: int, sums: Any) -> None:
    """Sum down the columns and then along the row, as `normalisation.window_sum` does; `sums[1]` is the result."""
    height, size = values.shape
    below, total, here = sums[0], sums[1], values[row]
    for i in range(size):
        below[i] = here[i]
    for shift in range(1, reach + 1):
        if shift <= row:
            other = values[row - shift]
            for i in range(size):
                below[i] += other[i]
        if shift < height - row:
            other = values[row + shift]
            for i in range(size):
                below[i] += other[i]
    for i in range(size):
        total[i] = below[i]
    for distance in range(channels, reach * channels + 1, channels):
        to, other = total[distance:], below[: size - distance]
        for i in range(size - distance):
            to[i] += other[i]
        to, other = total[: size - distance], below[distance:]
        for i in range(size - distance):
            to[i] += other[i]
