"""Whether two pictures show the same pixels after one is turned, mirrored, scaled and shifted onto the other.

Rotation and scale come from the spectra in polar coordinates (Reddy and Chatterji, "An FFT-based technique for
translation, rotation, and scale-invariant image registration", 1996), the shift from a masked normalised
cross-correlation (Padfield, "Masked object registration in the Fourier domain", 2012).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.ndimage import gaussian_filter, map_coordinates

from deephash_pipeline.photographs.duplicates.frequencies import (
    ORIENTATIONS,
    low_frequencies,
    oriented,
    placed,
    resized,
    weighted,
)

LONGER_SIDE = 64
"""In pixels, of the pictures that are compared."""
LEAST_SIDE, CANVAS = 8, 128
ANGLES, RADII = 90, 64
NEAREST_RADIUS, RADIUS_RANGE = 3.0, 40.0 / 3.0
LARGEST_SCALE = 2.6
SCALES = (1.0, 0.89, 0.79, 0.7, 0.62)
LEAST_PEAK = 0.45
# Of details, in pixels: those that are left of an edit, and of what is compared around each.
FINE, COARSE, AROUND = 0.7, 2.0, 4.0
FLAT_DEVIATION = 0.02
# Shifts at which less of the smaller picture is covered are not looked at.
LEAST_OVERLAP = 0.6
MARGIN = 3
LEAST_POWER = 1e-5
HOPELESS, CERTAIN = 0.45, 0.9
STEPS = ((np.radians(1), 1.02), (np.radians(0.5), 1.01))
# Of the correlation around a pixel, in pixels, the power of details that count, and the least that is no change.
LOCAL, DETAILED, CHANGED = 2.5, 0.1, 0.3
LEAST_DETAILED = 0.02
# Share of a picture that counts as changed where its low frequencies alone are known.
UNSEEN = 0.36
WHOLE = np.eye(2, 3)
"""Where a picture is on its like."""


class Registration(NamedTuple):
    """How two pictures agree where one lies on the other.

    Attributes:
        correlation: correlation of the details that have not changed, or of low frequencies; 1 for equal pictures.
        changed: share of the overlap with details that are not those of the other picture, 0..1.
        placement: affine map float64 (2, 3) from the one to the other, of x and y as shares of width and height.

    Example:
        >>> Registration(correlation=1.0, changed=0.25, placement=WHOLE).agreement
        0.75
    """

    correlation: float
    changed: float
    placement: NDArray[np.float64]

    @property
    def agreement(self) -> float:
        """Correlation less the share of what has changed."""
        return self.correlation - self.changed

    def turned_round(self) -> "Registration":
        """The same, with the map from the other picture to the one."""
        back = np.linalg.inv(self.placement[:, :2])
        return self._replace(placement=np.column_stack([back, -back @ self.placement[:, 2]]))


class _Motion(NamedTuple):
    """Turned by an angle in radians, enlarged, before that mirrored."""

    angle: float
    scale: float
    mirrored: bool


class _Laid(NamedTuple):
    """A picture after a motion on another, shifted by some pixels."""

    correlation: float
    motion: _Motion
    down: int
    right: int


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
        return _details(self.grey) * self.mask

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
        shrunk = [_details(resized(self.grey, scaled((width, height), scale))) for scale in SCALES]
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
        return weighted(np.concatenate([oriented(low, orientation) for orientation in range(ORIENTATIONS)]))

    @cached_property
    def polar(self) -> NDArray[np.complex64]:
        """Transforms of the log-polar spectrum, of the picture and of its mirror image, see `_log_polar`."""
        return _log_polar(self.grey)


def register(one: Picture, other: Picture) -> Registration:
    """Lay one picture onto the other as well as can be; one that is flat agrees with none.

    Example:
        >>> scene = np.random.default_rng(0).random((48, 64), dtype=np.float32)
        >>> bool(register(Picture(scene), Picture(np.ascontiguousarray(scene[:, ::-1]))).correlation > 0.99)
        True
    """
    if one.flat or other.flat:
        return Registration(0.0, 1.0, WHOLE)
    best = max(_laid(one, other, motion) for motion in _scales(one, other))
    if best.correlation < CERTAIN:
        best = max([best, *(_laid(one, other, motion) for motion in _rotations(one, other))])
    if HOPELESS < best.correlation < CERTAIN:
        for angle, scale in STEPS:
            for turned, enlarged in ((angle, 1), (-angle, 1), (0, scale), (0, 1 / scale)):
                motion = best.motion
                tried = _Motion(motion.angle + turned, motion.scale * enlarged, motion.mirrored)
                best = max(best, _laid(one, other, tried))
    laid = Registration(*_compared(one, other, best), _placement(one, other, best))
    return max(laid, _whole(one, other), key=lambda found: found.agreement)


def _whole(one: Picture, other: Picture) -> Registration:
    """How two whole pictures agree beneath all details, of which strong compression leaves none."""
    likeness = other.low @ one.low[0]
    orientation = int(np.argmax(likeness))
    return Registration(float(likeness[orientation]), UNSEEN, placed(orientation))


def _details(grey: NDArray[np.float32]) -> NDArray[np.float32]:
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


def _scales(one: Picture, other: Picture) -> list[_Motion]:
    """The likeliest of some scales, by which the larger is shrunk, without rotation; and of the mirror image."""
    smaller = fft.irfft2(one.spectra[:1] * np.conj(other.spectra), (CANVAS, CANVAS)).max(axis=(1, 2))
    larger = fft.irfft2(one.spectra[1:] * np.conj(other.spectra[:1]), (CANVAS, CANVAS)).max(axis=(1, 2))
    agreement = np.concatenate([smaller / other.powers, larger / one.powers[1:]])
    scales = (*SCALES, *(1 / scale for scale in SCALES[1:]))
    return [_Motion(0, scales[np.argmax(agreement)], False), _Motion(0, 1, True)]


def _rotations(one: Picture, other: Picture) -> Iterator[_Motion]:
    """The likeliest rotation and scale by which the other picture becomes the one, and those of its mirror image."""
    most = int(np.log(LARGEST_SCALE) / np.log(RADIUS_RANGE) * RADII)
    for mirrored in (False, True):
        agreement = fft.irfft2(one.polar[0] * np.conj(other.polar[int(mirrored)]), (ANGLES, 2 * RADII)) / (
            ANGLES * RADII
        )
        agreement[:, most + 1 : -most] = -np.inf
        row, column = np.unravel_index(np.argmax(agreement), agreement.shape)
        if agreement[row, column] < LEAST_PEAK:
            continue
        steps = int(column) - (2 * RADII if column >= RADII else 0)
        # A spectrum is the same after half a turn.
        for half in (0, np.pi):
            yield _Motion(row * np.pi / ANGLES + half, RADIUS_RANGE ** (-steps / RADII), mirrored)


def _frame(grey: NDArray[np.float32], motion: _Motion) -> tuple[int, int]:
    """Height and width of a picture after a motion."""
    (height, width), cosine, sine = grey.shape, np.cos(motion.angle), np.sin(motion.angle)
    sides = abs(height * cosine) + abs(width * sine), abs(height * sine) + abs(width * cosine)
    rows, columns = (int(np.clip(np.ceil(side * motion.scale), 8, 5 * LONGER_SIDE // 2)) for side in sides)
    return rows, columns


def _placement(one: Picture, other: Picture, laid: _Laid) -> NDArray[np.float64]:
    """Where pixels of the one picture are on the other, as an affine map of shares of their sides."""
    (height, width), (tall, wide), motion = one.grey.shape, other.grey.shape, laid.motion
    rows, columns = _frame(other.grey, motion)
    cosine, sine = np.cos(motion.angle) / motion.scale, np.sin(motion.angle) / motion.scale
    back = np.array([[cosine, sine], [-sine, cosine]])
    middle = np.array([wide / 2, tall / 2]) - back @ [laid.right + columns / 2, laid.down + rows / 2]
    placement = np.column_stack([back * [width, height], middle]) / [[wide], [tall]]
    if motion.mirrored:
        placement[0] = [0, 0, 1] - placement[0]
    return placement


def _moved(grey: NDArray[np.float32], motion: _Motion) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Details of a picture after a motion about its middle, and where it is in its new frame, 1 or 0."""
    if motion.mirrored:
        grey = grey[:, ::-1]
    height, width = grey.shape
    cosine, sine = np.cos(motion.angle), np.sin(motion.angle)
    rows, columns = _frame(grey, motion)
    y = (np.arange(rows)[:, np.newaxis] - (rows - 1) / 2) / motion.scale
    x = (np.arange(columns) - (columns - 1) / 2) / motion.scale
    from_y, from_x = cosine * y - sine * x + (height - 1) / 2, sine * y + cosine * x + (width - 1) / 2
    inside = (abs(from_y - (height - 1) / 2) <= (height - 1) / 2 - MARGIN) & (
        abs(from_x - (width - 1) / 2) <= (width - 1) / 2 - MARGIN
    )
    mask = inside.astype(np.float32)
    return _details(map_coordinates(grey, [from_y, from_x], order=1, mode="nearest")) * mask, mask


def _laid(one: Picture, other: Picture, motion: _Motion) -> _Laid:
    """Agreement at the best shift of the other picture after a motion."""
    there, inside = _moved(other.grey, motion)
    here = one.details
    size = [fft.next_fast_len(side + more, real=True) for side, more in zip(here.shape, there.shape, strict=True)]
    of_here = fft.rfft2(np.stack([here, here * here, one.mask]), size)
    of_there = np.conj(fft.rfft2(np.stack([there, there * there, inside]), size))
    products, power, other_power, overlap = fft.irfft2(of_here[[0, 1, 2, 2]] * of_there[[0, 2, 1, 2]], size)
    least = LEAST_POWER * overlap.clip(1)
    covered = overlap > LEAST_OVERLAP * min(one.mask.sum(), inside.sum())
    correlation = np.where(covered, products / np.sqrt(np.maximum(power, least) * np.maximum(other_power, least)), -1)
    place = np.unravel_index(np.argmax(correlation), size)
    down = int(place[0]) - (size[0] if place[0] >= here.shape[0] else 0)
    right = int(place[1]) - (size[1] if place[1] >= here.shape[1] else 0)
    return _Laid(float(correlation[place]), motion, down, right)


def _compared(one: Picture, other: Picture, laid: _Laid) -> tuple[float, float]:
    """Correlation of the details that have not changed, and the share of those in the overlap that have.

    What has changed does not correlate with the details around the same place of the other.
    """
    here, (there, inside) = one.details, _moved(other.grey, laid.motion)
    height, width = here.shape
    top, left = max(0, laid.down), max(0, laid.right)
    bottom, right = min(height, len(there) + laid.down), min(width, there.shape[1] + laid.right)
    of_there = np.s_[top - laid.down : bottom - laid.down, left - laid.right : right - laid.right]
    both = inside[of_there] * one.mask[top:bottom, left:right]
    first, second = here[top:bottom, left:right] * both, there[of_there] * both
    powers = gaussian_filter(first * first, LOCAL), gaussian_filter(second * second, LOCAL)
    agreement = gaussian_filter(first * second, LOCAL) / (np.sqrt(powers[0] * powers[1]) + 1e-6)
    detailed = (both > 0) & (np.maximum(*powers) > DETAILED)
    same = detailed & (agreement >= CHANGED)
    if not same.any():
        return 0.0, 1.0
    first, second = first[same], second[same]
    return float(first @ second / np.sqrt((first @ first) * (second @ second))), 1 - float(same.sum() / detailed.sum())
