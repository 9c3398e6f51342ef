"""Low frequencies of whole pictures: their signs are pHash, and they tell how alike two are beneath all details."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import fft

SIDE, FREQUENCIES = 32, 8
FREQUENCY_BITS = FREQUENCIES**2
ORIENTATIONS = 8
ODD = np.where(np.arange(FREQUENCIES) % 2, -1, 1).astype(np.float32)
FREQUENCY_WEIGHTS = (1 + np.add.outer(np.arange(FREQUENCIES), np.arange(FREQUENCIES))).astype(np.float32)
"""Higher frequencies are weaker, and tell more. The lowest is the mean of the picture, and tells nothing."""
FREQUENCY_WEIGHTS[0, 0] = 0


def resized(grey: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float32]:
    """Resize a picture (height, width) to a width and a height.

    Example:
        >>> resized(np.zeros((4, 6), np.float32), (3, 2)).shape
        (2, 3)
    """
    return np.asarray(Image.fromarray(grey).resize(size, Image.Resampling.BILINEAR))


def low_frequencies(greys: Sequence[NDArray[np.generic]]) -> NDArray[np.float32]:
    """Give the lowest frequencies of pictures squashed to squares, of the cosine transform.

    Args:
        greys: pictures, (height, width) each.

    Returns:
        Float32 (pictures, 8, 8): down, across.

    Example:
        >>> low_frequencies([np.ones((40, 60))]).round(3)[0, 0, :2].tolist()
        [32.0, 0.0]
    """
    squares = [resized(grey.astype(np.float32), (SIDE, SIDE)) for grey in greys]
    whole = np.array(squares, dtype=np.float32).reshape(-1, SIDE, SIDE)
    low: NDArray[np.float32] = fft.dctn(whole, axes=(1, 2), norm="ortho")[:, :FREQUENCIES, :FREQUENCIES]
    return low


def frequencies_in(low: NDArray[np.float32], orientation: int) -> NDArray[np.float32]:
    """Give the frequencies of pictures in one of eight orientations.

    Args:
        low: float32 (pictures, 8, 8).
        orientation: 4 for transposed, and 2 for upside down, and 1 for mirrored left to right, after that.
    """
    # A mirror image has the odd frequencies with the other sign.
    turned = low.transpose(0, 2, 1) if orientation & 4 else low
    turned = turned * ODD[:, np.newaxis] if orientation & 2 else turned
    return turned * ODD if orientation & 1 else turned


def placement_in(orientation: int) -> NDArray[np.float64]:
    """Give the map from a picture to what it is in an orientation, of x and y as shares of width and height, (2, 3).

    Example:
        >>> placement_in(5).tolist()
        [[0.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]
    """
    across, down = orientation & 1, (orientation & 2) >> 1
    placement = np.array([[1.0 - 2 * across, 0, across], [0, 1.0 - 2 * down, down]])
    return placement[::-1] if orientation & 4 else placement


def perceptual_hashes(low: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Hash pictures by their frequencies, uint8 (pictures, 8).

    A bit says whether one of the 64 lowest frequencies is above their median (Zauner, "Implementation and benchmarking
    of perceptual image hash functions", 2010).
    """
    flat = low.reshape(len(low), FREQUENCY_BITS)
    return np.packbits(flat > np.median(flat[:, 1:], axis=1, keepdims=True), axis=1)


def likeness_vectors(low: NDArray[np.float32]) -> NDArray[np.float32]:
    """Give vectors of length 1, float32 (pictures, 64); products of them are 1 for pictures that are alike."""
    flat = (low * FREQUENCY_WEIGHTS).reshape(len(low), FREQUENCY_BITS)
    lengths = np.linalg.norm(flat, axis=1, keepdims=True)
    return np.asarray(flat / np.maximum(lengths, np.finfo(np.float32).tiny), dtype=np.float32)
