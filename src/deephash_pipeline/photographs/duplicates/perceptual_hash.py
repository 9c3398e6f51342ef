"""pHash: signs of the low frequencies of a picture, for it and for what it is turned and mirrored into."""

import numpy as np
from numpy.typing import NDArray
from scipy import fft

SIDE, FREQUENCIES = 32, 8
FREQUENCY_BITS = FREQUENCIES**2
ORIENTATIONS = 8


def perceptual_hashes(grey: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Hash pictures in eight orientations: as they are, mirrored left to right, upside down, both; and transposed.

    A bit says whether one of the 64 lowest frequencies of the cosine transform is above their median (Zauner,
    "Implementation and benchmarking of perceptual image hash functions", 2010).

    Args:
        grey: float32 (pictures, 32, 32), whole pictures squashed to squares.

    Returns:
        Packed codes, uint8 (pictures, 8, 8): orientation, byte.

    Example:
        >>> grey = np.random.default_rng(0).random((1, 32, 32), dtype=np.float32)
        >>> turned = np.rot90(grey, axes=(1, 2))
        >>> (perceptual_hashes(grey)[:, 0] == perceptual_hashes(turned)).all(axis=2).any()
        np.True_
    """
    low = fft.dctn(grey, axes=(1, 2), norm="ortho")[:, :FREQUENCIES, :FREQUENCIES]
    odd = np.where(np.arange(FREQUENCIES) % 2, -1, 1)
    # A mirror image has the odd frequencies with the other sign.
    signs = np.stack([np.ones((FREQUENCIES, FREQUENCIES)), np.tile(odd, (FREQUENCIES, 1))])
    signs = np.concatenate([signs, signs * odd[:, np.newaxis]])
    oriented = np.concatenate([low[:, np.newaxis] * signs, low.transpose(0, 2, 1)[:, np.newaxis] * signs], axis=1)
    flat = oriented.reshape(len(grey), ORIENTATIONS, FREQUENCY_BITS)
    # Without the mean of the picture, which is no frequency.
    medians = np.median(flat[:, :, 1:], axis=2, keepdims=True)
    return np.packbits(flat > medians, axis=2)
