"""Pooling as loops that numba compiles; see `kernels`.

Windows share no pixel, or they overlap: then they are of three by three pixels, two apart, responses are of even height
and width, and the last windows hang over the border by one pixel, as in Caffe.
"""

from typing import Any

import numpy as np
from numba import njit

from deephash_pipeline.common.machine_code import compiled
from deephash_pipeline.networks.kernels import as_float32, narrowed


@njit(inline="always", error_model="numpy")
def _wins(value: Any, best: Any) -> Any:
    return (value > best) | np.isnan(value)


@compiled(error_model="numpy")
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
                        here[column * channels + channel] = as_float32(windows[row, down, column, right, channel])
                this = np.uint8(down * side + right)
                for i in range(size):
                    better = (this == 0) | _wins(here[i], best[i])
                    best[i] = here[i] if better else best[i]
                    place[i] = this if better else place[i]
        for i in range(size):
            pooled[row, i] = narrowed(best[i], pooled[row, i])
            places[row, i] = place[i]


@compiled(error_model="numpy")
def put_at_maxima(gradient: Any, places: Any, windows: Any) -> None:
    """Write the gradient where the maximum came from, and zero elsewhere."""
    rows, side, columns, _, channels = windows.shape
    size = columns * channels
    own, here = np.empty(size, np.float32), np.empty(size, np.float32)
    zero, like = np.float32(0), gradient[0, 0]
    for row in range(rows):
        for i in range(size):
            # No zero is negative then, as in sums that begin at zero.
            own[i] = zero + as_float32(gradient[row, i])
        for down in range(side):
            for right in range(side):
                for i in range(size):
                    here[i] = own[i] if places[row, i] == down * side + right else zero
                for column in range(columns):
                    for channel in range(channels):
                        windows[row, down, column, right, channel] = narrowed(here[column * channels + channel], like)


@compiled(error_model="numpy")
def take_overlapping_maxima(responses: Any, pooled: Any, places: Any) -> None:
    """Find the first maximum, or the last NaN, of overlapping windows.

    Args:
        responses: shape (batch, height, width, channels), height and width even.
        pooled: array that maxima are written to, of shape (batch, height / 2, width / 2 * channels).
        places: array that their places in the windows are written to, row by row from 0 to 8, of the same shape.
    """
    batch, height, width, channels = responses.shape
    columns, size = width // 2, width // 2 * channels
    # Pixels of a row in even and in odd columns; what lies beyond the border is never a maximum.
    even, odd = np.full(size + channels, -np.inf, np.float32), np.empty(size, np.float32)
    next_even = even[channels:]
    # Of the last three rows, one of each window: its maximum, and where in the row that is.
    maxima, columns_of = np.empty((3, size), np.float32), np.empty((3, size), np.uint8)
    for image in range(batch):
        for row in range(height + 1):
            third, third_column = maxima[row % 3], columns_of[row % 3]
            if row == height:
                third[:] = -np.inf
            else:
                for column in range(columns):
                    for channel in range(channels):
                        even[column * channels + channel] = as_float32(responses[image, row, 2 * column, channel])
                        odd[column * channels + channel] = as_float32(responses[image, row, 2 * column + 1, channel])
                for i in range(size):
                    best, place = even[i], np.uint8(0)
                    better = _wins(odd[i], best)
                    best, place = odd[i] if better else best, np.uint8(1) if better else place
                    better = _wins(next_even[i], best)
                    third[i], third_column[i] = next_even[i] if better else best, np.uint8(2) if better else place
            if row % 2 or not row:
                continue
            first, first_column = maxima[(row - 2) % 3], columns_of[(row - 2) % 3]
            second, second_column = maxima[(row - 1) % 3], columns_of[(row - 1) % 3]
            to, place_to = pooled[image, row // 2 - 1], places[image, row // 2 - 1]
            for i in range(size):
                best, place = first[i], first_column[i]
                better = _wins(second[i], best)
                best, place = second[i] if better else best, np.uint8(3) + second_column[i] if better else place
                better = _wins(third[i], best)
                best, place = third[i] if better else best, np.uint8(6) + third_column[i] if better else place
                to[i], place_to[i] = narrowed(best, to[i]), place


@njit(inline="always", error_model="numpy")
def _if_at(place: int, gradient: Any, places: Any, i: int) -> Any:
    return gradient[i] if places[i] == place else np.float32(0)


@compiled(error_model="numpy")
def put_at_overlapping_maxima(gradient: Any, places: Any, result: Any) -> None:
    """Add up the gradients of the windows whose maximum came from a pixel, window by window as PyTorch does.

    Args:
        gradient: gradient by the maxima, of shape (batch, height / 2, width / 2 * channels).
        places: places that `take_overlapping_maxima` has written.
        result: array that is written, of shape (batch, height, width, channels).
    """
    batch, height, width, channels = result.shape
    size = width // 2 * channels
    # Two rows of windows, with one more before the first column that has its maximum nowhere.
    gradients, places_of = np.zeros((2, size + channels), np.float32), np.full((2, size + channels), 9, np.uint8)
    even, odd = np.empty(size, np.float32), np.empty(size, np.float32)
    zero, like = np.float32(0), gradient[0, 0, 0]
    for image in range(batch):
        # There is none above the first.
        places_of[1] = 9
        for row in range(height // 2):
            left, left_place = gradients[row % 2], places_of[row % 2]
            upper_left, upper_left_place = gradients[1 - row % 2], places_of[1 - row % 2]
            here, place = left[channels:], left_place[channels:]
            above, above_place = upper_left[channels:], upper_left_place[channels:]
            own, own_place = gradient[image, row], places[image, row]
            for i in range(size):
                # No zero is negative then, and no sum of two.
                here[i] = zero + as_float32(own[i])
                place[i] = own_place[i]
            for i in range(size):
                total = _if_at(8, upper_left, upper_left_place, i)
                total = as_float32(narrowed(total + _if_at(6, above, above_place, i), like))
                total = as_float32(narrowed(total + _if_at(2, left, left_place, i), like))
                even[i] = total + _if_at(0, here, place, i)
            for i in range(size):
                odd[i] = _if_at(7, above, above_place, i) + _if_at(1, here, place, i)
            _write_row(even, odd, result[image, 2 * row])
            for i in range(size):
                even[i] = _if_at(5, left, left_place, i) + _if_at(3, here, place, i)
            for i in range(size):
                odd[i] = _if_at(4, here, place, i)
            _write_row(even, odd, result[image, 2 * row + 1])


@njit(inline="always", error_model="numpy")
def _write_row(even: Any, odd: Any, pixels: Any) -> None:
    width, channels = pixels.shape
    for column in range(width // 2):
        for channel in range(channels):
            pixels[2 * column, channel] = narrowed(even[column * channels + channel], pixels[2 * column, channel])
            pixels[2 * column + 1, channel] = narrowed(odd[column * channels + channel], pixels[2 * column, channel])


@compiled(error_model="numpy")
def spread_means(gradient: Any, result: Any) -> None:
    """Give each pixel its shares of the gradients by the means of the windows that it lies in.

    What hangs over the border is not counted.

    Args:
        gradient: gradient by the means, of shape (batch, height / 2, width / 2 * channels).
        result: array that is written, of shape (batch, height, width, channels).
    """
    batch, height, width, channels = result.shape
    size = width // 2 * channels
    shares = np.empty((2, size + channels), np.float32)
    even, odd = np.empty(size, np.float32), np.empty(size, np.float32)
    in_row = np.full(size, 3, np.float32)
    in_row[size - channels :] = 2
    zero, like = np.float32(0), gradient[0, 0, 0]
    for image in range(batch):
        # There is no window before the first column, and none above the first row.
        shares[:] = 0
        for row in range(height // 2):
            left, upper_left = shares[row % 2], shares[1 - row % 2]
            here, above, own = left[channels:], upper_left[channels:], gradient[image, row]
            in_column = np.float32(3 if row < height // 2 - 1 else 2)
            for i in range(size):
                here[i] = zero + as_float32(narrowed(as_float32(own[i]) / (in_column * in_row[i]), like))
            for i in range(size):
                total = as_float32(narrowed(upper_left[i] + above[i], like))
                even[i] = as_float32(narrowed(total + left[i], like)) + here[i]
            for i in range(size):
                odd[i] = above[i] + here[i]
            _write_row(even, odd, result[image, 2 * row])
            for i in range(size):
                even[i] = left[i] + here[i]
            _write_row(even, here, result[image, 2 * row + 1])
