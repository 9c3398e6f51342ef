"""Small grey picture, with the spectra and details by which it is laid onto another."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.ndimage import gaussian_filter, map_coordinates

from deephash_pipeline.photographs.duplicates.frequencies import (
    ORIENTATIONS,
    frequencies_in,
    likeness_vectors,
    low_frequencies,
    resized,
)

LONGER_SIDE = 64
"""In pixels, of the pictures that are compared."""
LEAST_SIDE, CANVAS = 8, 128
ANGLES, RADII = 90, 64
NEAREST_RADIUS, RADIUS_RANGE = 3.0, 40.0 / 3.0
SCALES = (1.0, 0.89, 0.79, 0.7, 0.62)
# Of details, in pixels: those that are left of an edit, and of what is compared around each.
FINE, COARSE, AROUND = 0.7, 2.0, 4.0
FLAT_DEVIATION = 0.02
MARGIN = 3
# In pixels around one, and the power of details that count.
LOCAL, DETAILED = 2.5, 0.1
LEAST_DETAILED = 0.02


@dataclass(frozen=True, eq=False)
class Picture:
    """A grey picture, small, with what is computed of it once.

    Args:
        grey: float32 (height, width) in [0, 1], the longer side of `LONGER_SIDE` pixels.

    Example:
        >>> bool(Picture(np.zeros((48, 64), dtype=np.float32)).details.any())
        False
    """

    grey: NDArray[np.float32]

    @cached_property
    def details(self) -> NDArray[np.float32]:
        """Of the picture, in units of those around each pixel; none near its edges, which a frame would change."""
        return local_details(self.grey) * self.mask

    @cached_property
    def mask(self) -> NDArray[np.float32]:
        """Where details are compared, 1 or 0."""
        mask = np.zeros(self.grey.shape, dtype=np.float32)
        mask[MARGIN:-MARGIN, MARGIN:-MARGIN] = 1
        return mask

    @cached_property
    def flat(self) -> bool:
        """Whether there is hardly any detail by which it could be told from others."""
        return bool((gaussian_filter(self.details**2, LOCAL) > DETAILED).mean() < LEAST_DETAILED)

    @cached_property
    def spectra(self) -> NDArray[np.complex64]:
        """Transforms of the details of the picture, shrunk by each of the scales."""
        height, width = self.grey.shape
        shrunk = [local_details(resized(self.grey, scaled((width, height), scale))) for scale in SCALES]
        transforms: NDArray[np.complex64] = np.stack([fft.rfft2(details, (CANVAS, CANVAS)) for details in shrunk])
        return transforms

    @cached_property
    def powers(self) -> NDArray[np.float32]:
        """Sums of the squares of these details."""
        whole = fft.irfft2(np.abs(self.spectra) ** 2, (CANVAS, CANVAS))[:, 0, 0]
        return np.asarray(np.maximum(whole, 1), dtype=np.float32)

    @cached_property
    def low(self) -> NDArray[np.float32]:
        """Weighted low frequencies in each orientation, (8, 64)."""
        low = low_frequencies([self.grey])
        return likeness_vectors(np.concatenate([frequencies_in(low, turned) for turned in range(ORIENTATIONS)]))

    @cached_property
    def polar(self) -> NDArray[np.complex64]:
        """Transforms of the log-polar spectrum, of the picture and of its mirror image, see `_log_polar`."""
        return _log_polar(self.grey)


def local_details(grey: NDArray[np.float32]) -> NDArray[np.float32]:
    """Details of a picture (height, width) in units of those around each pixel.

    Example:
        >>> bool(local_details(np.ones((9, 9), np.float32)).any())
        False
    """
    details = gaussian_filter(grey, FINE) - gaussian_filter(grey, COARSE)
    return np.asarray(
        details / (np.sqrt(gaussian_filter(details * details, AROUND)) + FLAT_DEVIATION), dtype=np.float32
    )


def scaled(size: tuple[int, int], scale: float) -> tuple[int, int]:
    """Sides in pixels times a scale, at least 8 of them.

    Example:
        >>> scaled((640, 64), 0.1)
        (64, 8)
    """
    first, second = size
    return max(LEAST_SIDE, round(first * scale)), max(LEAST_SIDE, round(second * scale))


POLAR_ANGLES = np.arange(ANGLES)[:, np.newaxis] * np.pi / ANGLES
POLAR_RADII = NEAREST_RADIUS * RADIUS_RANGE ** (np.arange(RADII) / RADII)
POLAR_GRID = np.stack([np.sin(POLAR_ANGLES) * POLAR_RADII, np.cos(POLAR_ANGLES) * POLAR_RADII]) + CANVAS // 2


def _log_polar(grey: NDArray[np.float32]) -> NDArray[np.complex64]:
    """Of a picture and its mirror image, by angle and logarithm of the radius, complex64 (2, ANGLES, RADII + 1)."""
    height, width = grey.shape
    window = np.hanning(height + 2)[1:-1, np.newaxis] * np.hanning(width + 2)[1:-1]
    spectrum = np.log1p(10 * np.abs(fft.fftshift(fft.fft2((grey - grey.mean()) * window, (CANVAS, CANVAS)))))
    polar = map_coordinates(spectrum, POLAR_GRID, order=1)
    polar -= polar.mean(axis=0)
    even = np.asarray(polar / (polar.std() + 1e-6), dtype=np.float32)
    both = np.stack([even, even[-np.arange(ANGLES) % ANGLES]])
    transformed: NDArray[np.complex64] = fft.rfft2(both, (ANGLES, 2 * RADII))
    return transformed
