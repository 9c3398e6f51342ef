"""Whether two pictures show the same pixels after one is turned, mirrored, scaled and shifted onto the other.

Rotation and scale come from the spectra in polar coordinates (Reddy and Chatterji, "An FFT-based technique for
translation, rotation, and scale-invariant image registration", 1996), the shift from a masked normalised
cross-correlation (Padfield, "Masked object registration in the Fourier domain", 2012).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.ndimage import gaussian_filter, map_coordinates

from deephash_pipeline.photographs.duplicates.frequencies import placement_in
from deephash_pipeline.photographs.duplicates.small_picture import (
    ANGLES,
    CANVAS,
    DETAILED,
    LOCAL,
    LONGER_SIDE,
    MARGIN,
    RADII,
    RADIUS_RANGE,
    SCALES,
    Picture,
    local_details,
)

LARGEST_SCALE = 2.6
LEAST_PEAK = 0.45
# Shifts at which less of the smaller picture is covered are not looked at.
LEAST_OVERLAP = 0.6
LEAST_POWER = 1e-5
HOPELESS, CERTAIN = 0.45, 0.9
STEPS = ((np.radians(1), 1.02), (np.radians(0.5), 1.01))
# Share of a picture that is taken as changed where its low frequencies alone are known.
UNSEEN = 0.49
# Correlation around a pixel below which it has changed, and from which it has surely not; how much changes count beside
# what has not; and the most that the latter tells, for smooth pictures of all kinds have some details in common.
CHANGED, UNCHANGED, WEIGHT_OF_CHANGES, MOST_BESIDE_CHANGES = 0.3, 0.5, 0.7, 0.84
WHOLE = np.eye(2, 3)
"""Where a picture is on its like."""


class Registration(NamedTuple):
    """How two pictures agree where one lies on the other.

    Attributes:
        agreement: correlation of their details less the share of the overlap that has changed, 1 for equal pictures. Up
            to `MOST_BESIDE_CHANGES` it is that of the details that have not changed, less a part of that share, or of
            low frequencies, if those are higher.
        placement: affine map float64 (2, 3) from the one to the other, of x and y as shares of width and height.

    Example:
        >>> Registration(agreement=1.0, placement=np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]])).turned_round().placement
        array([[ 1. ,  0. , -0.5],
               [ 0. ,  1. ,  0. ]])
    """

    agreement: float
    placement: NDArray[np.float64]

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


def register(one: Picture, other: Picture) -> Registration:
    """Lay one picture onto the other as well as can be; one that is flat agrees with none.

    Example:
        >>> scene = np.random.default_rng(0).random((48, 64), dtype=np.float32)
        >>> bool(register(Picture(scene), Picture(np.ascontiguousarray(scene[:, ::-1]))).agreement > 0.99)
        True
    """
    if one.flat or other.flat:
        return Registration(-1.0, WHOLE)
    best = max(_laid(one, other, motion) for motion in _scales(one, other))
    if best.correlation < CERTAIN:
        best = max([best, *(_laid(one, other, motion) for motion in _rotations(one, other))])
    if HOPELESS < best.correlation < CERTAIN:
        for angle, scale in STEPS:
            for turned, enlarged in ((angle, 1), (-angle, 1), (0, scale), (0, 1 / scale)):
                motion = best.motion
                tried = _Motion(motion.angle + turned, motion.scale * enlarged, motion.mirrored)
                best = max(best, _laid(one, other, tried))
    laid = Registration(_agreement(one, other, best), _placement(one, other, best))
    return max(laid, _whole(one, other), key=lambda found: found.agreement)


def _whole(one: Picture, other: Picture) -> Registration:
    """How two whole pictures agree beneath all details, of which strong compression leaves none."""
    likeness = other.low @ one.low[0]
    orientation = int(np.argmax(likeness))
    return Registration(float(likeness[orientation]) - WEIGHT_OF_CHANGES * UNSEEN, placement_in(orientation))


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
    return local_details(map_coordinates(grey, [from_y, from_x], order=1, mode="nearest")) * mask, mask


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


def _agreement(one: Picture, other: Picture, laid: _Laid) -> float:
    """See `Registration`; what has changed does not correlate with the details around that place of the other."""
    here, (there, inside) = one.details, _moved(other.grey, laid.motion)
    height, width = here.shape
    top, left = max(0, laid.down), max(0, laid.right)
    bottom, right = min(height, len(there) + laid.down), min(width, there.shape[1] + laid.right)
    of_there = np.s_[top - laid.down : bottom - laid.down, left - laid.right : right - laid.right]
    both = inside[of_there] * one.mask[top:bottom, left:right]
    first, second = here[top:bottom, left:right] * both, there[of_there] * both
    powers = gaussian_filter(first * first, LOCAL), gaussian_filter(second * second, LOCAL)
    around = gaussian_filter(first * second, LOCAL) / (np.sqrt(powers[0] * powers[1]) + 1e-6)
    detailed = (both > 0) & (np.maximum(*powers) > DETAILED)
    same = detailed & (around >= UNCHANGED)
    if not same.any():
        return laid.correlation - 1
    first, second = first[same], second[same]
    unchanged = float(first @ second / np.sqrt((first @ first) * (second @ second)))
    beside_changes = unchanged - WEIGHT_OF_CHANGES * (1 - float(same.sum() / detailed.sum()))
    of_all = laid.correlation - float((around[detailed] < CHANGED).mean())
    return max(of_all, min(beside_changes, MOST_BESIDE_CHANGES))
