"""Mean and standard deviation of the pixels, with which the networks' input is standardised."""

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError

LEVELS = 256
BYTES_PER_BLOCK = 2**22


def pixel_statistics(images: NDArray[np.uint8]) -> dict[str, list[float]]:
    """Mean and (population) standard deviation of each channel, in units of [0, 1].

    Pixels are counted by grey level, block by block: the sums are exact, and a memory map of any size is read once,
    without being loaded whole.

    Args:
        images: the training images, uint8 of shape (n, c, h, w).

    Returns:
        {"mean": c numbers, "standard_deviation": c numbers}.

    Raises:
        InputError: if there is no image, the array is not uint8 of four dimensions, or a channel is constant.

    Example:
        >>> pixel_statistics(np.array([0, 255], dtype=np.uint8).reshape(1, 1, 1, 2))
        {'mean': [0.5], 'standard_deviation': [0.5]}
    """
    if images.dtype != np.uint8 or images.ndim != 4 or not images.size:
        raise InputError(
            f"images are {images.dtype} of shape {images.shape}: give at least one, as uint8 of shape (n, c, h, w)."
        )
    channels = images.shape[1]
    counts = np.zeros((channels, LEVELS), dtype=np.int64)
    rows = max(1, BYTES_PER_BLOCK // images[0].size)
    for start in range(0, len(images), rows):
        block = images[start : start + rows]
        for channel in range(channels):
            counts[channel] += np.bincount(block[:, channel].ravel(), minlength=LEVELS)
    levels = np.arange(LEVELS) / (LEVELS - 1)
    shares = counts / counts.sum(axis=1, keepdims=True)
    mean = shares @ levels
    deviation = np.sqrt(np.sum(shares * (levels - mean[:, np.newaxis]) ** 2, axis=1))
    constant = np.flatnonzero(np.count_nonzero(counts, axis=1) == 1)
    if constant.size:
        raise InputError(
            f"channel {constant[0]} of the training images has the same value in every pixel, hence no deviation: "
            "check that the images were decoded, or drop the channel."
        )
    return {"mean": mean.tolist(), "standard_deviation": deviation.tolist()}
