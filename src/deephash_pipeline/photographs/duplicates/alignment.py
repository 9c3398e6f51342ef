"""One picture laid onto another to a tenth of a pixel, from where a small one lies roughly.

The affine map and the light of the picture are fitted together, on larger and larger pictures, by the method of Gauss
and Newton with weights that leave out what has changed (Lucas and Kanade, "An iterative image registration technique
with an application to stereo vision", 1981).
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter

SIDES = (64, 128, 256, 512, 1024)
"""In pixels, of the longer side of the pictures on which the map is fitted."""
BLUR = 2.0
"""In pixels, of the first of them: a place farther away than its details are wide is not found."""
ALIGNMENT_STEPS, CONVERGED = 20, 0.01
"""Steps on each, and pixels by which the last one moves a corner."""
LEAST_NOISE = 2.0
PIXELS_OF_AN_ESTIMATE = 20_000
"""Pixels of which light and noise are estimated."""
LEAST_SIDE_OF_A_LEVEL = 8
HARDLY_SMALLER = 0.8


def aligned(
    one: NDArray[np.float32], other: NDArray[np.float32], placement: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Refine where one grey picture lies on another.

    Args:
        one: float32 (height, width).
        other: float32 (height, width) of another size.
        placement: affine map float64 (2, 3) from the one to the other, of x and y as shares of their sides.

    Returns:
        The map, as it is given.

    Example:
        >>> waves = np.sin(np.arange(80) / 5).astype(np.float32)
        >>> whole = 128 + 50 * np.add.outer(waves, waves)
        >>> (aligned(whole[:, 8:], whole, np.array([[0.9, 0, 0.08], [0, 1, 0]])).round(3) + 0).tolist()
        [[0.9, 0.0, 0.1], [0.0, 1.0, 0.0]]
    """
    longest = max(one.shape)
    sides = [*(side for side in SIDES if side < longest), min(longest, SIDES[-1])]
    for number, side in enumerate((sides[0], *sides)):
        share = side / longest
        pair = shrunk(one, share), shrunk(other, share / resolution(placement, one.shape, other.shape))
        here, there = pair if number else (gaussian_filter(grey, BLUR) for grey in pair)
        placement = _fitted(here, there, placement)
    return placement


def resolution(placement: NDArray[np.float64], one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """How many pixels of the other picture, by their sides, are one of the one picture.

    Example:
        >>> resolution(np.eye(2, 3), (30, 40), (60, 80))
        2.0
    """
    area = abs(float(np.linalg.det(placement[:, :2])))
    return float(np.sqrt(max(area, 1e-6) * other[0] * other[1] / (one[0] * one[1])))


def shrunk(grey: NDArray[np.float32], share: float) -> NDArray[np.float32]:
    """A picture (height, width) with a share of its pixels in a row; itself where that is hardly smaller."""
    if share > HARDLY_SMALLER:
        return grey
    height, width = (max(LEAST_SIDE_OF_A_LEVEL, round(side * share)) for side in grey.shape)
    return np.asarray(Image.fromarray(grey).resize((width, height), Image.Resampling.BOX))


def laid_on(other: NDArray[np.float32], placement: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.float32]:
    """Pixels of a picture (height, width) where those of another, of a height and width, are on it."""
    height, width = other.shape
    scaled = placement * [[width], [height]] / [size[1], size[0], 1]
    image = Image.fromarray(other).transform(
        (size[1], size[0]), Image.Transform.AFFINE, tuple(scaled.ravel()), Image.Resampling.BICUBIC
    )
    return np.asarray(image)


def inside(
    placement: NDArray[np.float64], size: tuple[int, int], other: tuple[int, int], margin: float
) -> NDArray[np.bool_]:
    """Where pixels of a picture of a height and width are on another of some height and width.

    Args:
        placement: affine map from the one to the other.
        size: height and width of the one.
        other: height and width of the other.
        margin: distance in pixels of the other that they have at least to its edges.
    """
    y, x = (np.arange(side) + 0.5 for side in size)
    sides = np.array([other[1], other[0]])
    across, down = (
        (row[0] * x / size[1] + (row[1] * y / size[0])[:, np.newaxis] + row[2]) * side
        for row, side in zip(placement, sides, strict=True)
    )
    return np.asarray(
        (across >= margin) & (across <= sides[0] - margin) & (down >= margin) & (down <= sides[1] - margin)
    )


def line(one: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float]:
    """Slope and level of the least squares from some values to others; those of equal values where these are all alike.

    Example:
        >>> line(np.array([1.0, 2.0, 3.0]), np.array([3.0, 5.0, 7.0]))
        (2.0, 1.0)
    """
    middle, of_other = float(one.mean()), float(other.mean())
    away = one - middle
    power = float(away @ away)
    if power < 1e-6 * len(one):
        return 1.0, 0.0
    slope = float(away @ (other - of_other)) / power
    return slope, of_other - slope * middle


def _fitted(
    here: NDArray[np.float32], other: NDArray[np.float32], placement: NDArray[np.float64]
) -> NDArray[np.float64]:
    height, width = here.shape
    x, y = np.meshgrid((np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height)
    for _ in range(ALIGNMENT_STEPS):
        there = laid_on(other, placement, (height, width))
        valid = inside(placement, (height, width), (other.shape[0], other.shape[1]), 2.0)
        # What is black or white may have been darker or brighter.
        valid &= (here > 4) & (here < 251)
        if valid.sum() < 64:
            return placement
        slopes = np.array(np.gradient(there), dtype=np.float32)
        down, across = slopes[0][valid] * height, slopes[1][valid] * width
        x_in, y_in, seen = x[valid], y[valid], there[valid]
        columns: NDArray[np.float64] = np.stack(
            [across * x_in, across * y_in, across, down * x_in, down * y_in, down, seen, np.ones_like(seen)]
        )
        wanted = here[valid].astype(np.float64)
        slope, level = _light(seen, wanted)
        error = wanted - (slope * seen + level)
        noise = max(LEAST_NOISE, 2 * float(np.median(np.abs(error[:: max(1, len(error) // PIXELS_OF_AN_ESTIMATE)]))))
        weights = 1 / (1 + (error / noise) ** 2) ** 2
        columns[:6] *= slope
        weighted = columns * weights
        normal = weighted @ columns.T
        normal[np.diag_indices(8)] *= 1 + 1e-4
        try:
            step = np.linalg.solve(normal, weighted @ error)[:6].reshape(2, 3)
        except np.linalg.LinAlgError:
            return placement
        if not np.isfinite(step).all() or bool((np.abs(step) > 0.2).any()):
            return placement
        placement = np.column_stack(
            [placement[:, :2] + placement[:, :2] @ step[:, :2], placement[:, :2] @ step[:, 2] + placement[:, 2]]
        )
        if np.abs(step).sum(axis=1).max() * max(height, width) < CONVERGED:
            break
    return placement


def _light(one: NDArray[np.float32], other: NDArray[np.float64]) -> tuple[float, float]:
    """Slope and level of the least squares, outliers left out once."""
    few = slice(None, None, max(1, len(one) // PIXELS_OF_AN_ESTIMATE))
    before, after = one[few].astype(np.float64), other[few]
    chosen = np.ones(before.shape, np.bool_)
    slope, level = 1.0, 0.0
    for _ in range(3):
        if chosen.sum() < 16 or before[chosen].std() < 1e-3:
            break
        slope, level = line(before[chosen], after[chosen])
        error = np.abs(after - (slope * before + level))
        chosen = error <= 3 * max(float(np.median(error)), 1.0)
    return slope, level
