"""Remainder of a picture after another, laid on it and edited as a copy may be, is taken away.

A copy may be scaled, compressed, brighter or of more contrast, blurred, grey, and framed in one colour. The edit is
fitted to the whole picture; what it does not explain counts where it is largest, and not on average.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from deephash_pipeline.photographs.duplicates.alignment import (
    PIXELS_OF_AN_ESTIMATE,
    inside,
    laid_on,
    line,
    resolution,
    shrunk,
)
from deephash_pipeline.photographs.duplicates.groups import GREYISH

GREY = np.array([0.299, 0.587, 0.114], dtype=np.float32)
BLURS = (0.0, 0.6, 1.0, 1.5, 2.0, 3.0)
"""Standard deviations in pixels by which a copy may be blurred."""
STARTS, LIGHT_STEPS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6), 4
"""Contrasts to begin with where a copy's light is fitted, and steps."""
CONTRAST, SATURATION = (0.5, 2.0), (0.5, 1.6)
SHARPER = 1.35
"""Times that a copy may have the details of the other: one that has more is no copy of it."""
FINEST = 0.9
"""Pixels of the one to keep that are at least one of the copy, by their sides."""
LEAST_DETAIL = 0.7
"""Times that details of one pixel are as strong as those of two, where these are strongest: .5 if enlarged."""
LEAST_SIDE_OF_A_COPY, LEAST_SEEN = 48, 0.5
"""Of a copy: pixels of the shorter side, and the share of it that the one to keep has."""
FINE_BLUR, COLOURS, BLOCK = 1.0, 2.5, 2.5
"""Standard deviations in pixels of what is compared, in light and in colours, and of a block."""
LEVEL, OF_SLOPE = 5.0, 0.2
"""In greys, what may be left over of a block; more by a share of its slopes."""
LIGHT_LIMITS, COLOUR_LIMITS = (0.4, 4.0, 1.1), (0.8, 4.0, 3.0)
"""What may be left over in the worst block: a base, times of that in the middle one, and at most."""
SHIFT_LIMITS, SURROUNDINGS, STEADY = (0.12, 0.5, 0.3), 8.0, 16.0
"""Pixels by which a part may have moved: a base, times of what is left over of the middle block, which compression
makes, and at most. The size of a part, and the power of slopes that is hardly any."""
FLAT_FRAME = 3.0, 16.0
"""Greys that half of a frame of one colour may be away from it, and its worst block: at its edge compression acts."""
EDGE = 6
"""Pixels beyond a copy's own that are looked at; what is narrower is no frame, but the edge of a scan."""
JUMP = 5.0, 3.0
"""Greys, and times of those inside, by which a picture may change where a copy of a part of it ends."""


class Fitted(NamedTuple):
    """A picture edited to be like another, where it is known, and how sharp the other is beside it."""

    pixels: NDArray[np.float32]
    known: NDArray[np.bool_]
    sharpness: float


def left_over(kept: NDArray[np.float32], copy: NDArray[np.float32], placement: NDArray[np.float64]) -> str | None:
    """Say what tells a picture from an edit of another one; None if it is explained in every block.

    Args:
        kept: float32 (3, height, width) in [0, 255], the one to keep.
        copy: float32 (3, height, width) of another size.
        placement: affine map float64 (2, 3) from the copy to the one to keep, of x and y as shares of their sides.

    Example:
        >>> kept = np.random.default_rng(0).integers(0, 256, (3, 64, 64)).astype(np.float32)
        >>> left_over(kept, kept * 0.8, np.eye(2, 3)), left_over(kept, kept[::-1], np.eye(2, 3))
        (None, 'other details')
    """
    size = copy.shape[1], copy.shape[2]
    if min(size) < LEAST_SIDE_OF_A_COPY or min(kept.shape[1:]) < LEAST_SIDE_OF_A_COPY:
        return "too small to be sure"
    pixels = resolution(placement, size, kept.shape[1:])
    if pixels < FINEST:
        return "finer than the one to keep"
    kept = np.stack([shrunk(channel, 1 / pixels) for channel in kept])
    of_kept = kept.shape[1], kept.shape[2]
    if inside(placement, size, of_kept, 0.0).mean() < LEAST_SEEN:
        return "shows more than the one to keep"
    outside = ~inside(placement, size, of_kept, -1.0)
    if outside.any() and not _is_frame(copy, outside):
        return "shows more than the one to keep"
    if _ends_at_an_edge(kept, placement, size):
        return "the one to keep has a frame or something around it"
    if not _has_details(laid_on(_grey(kept), placement, size), inside(placement, size, of_kept, EDGE)):
        return "without details by which to tell"
    left = [_unexplained(fitted, copy) for fitted in _fitted(kept, copy, placement)]
    return None if None in left else next(iter(left), "other light")


def _is_frame(copy: NDArray[np.float32], outside: NDArray[np.bool_]) -> bool:
    """Whether pixels of a picture (3, height, width) are of one colour, but for what compression does at their edge."""
    colour = np.median(copy[:, outside], axis=1)[:, np.newaxis, np.newaxis]
    away = np.abs(copy - colour).max(axis=0) * outside
    half, worst = FLAT_FRAME
    share = gaussian_filter(outside.astype(np.float32), BLOCK)
    blocks = gaussian_filter(away, BLOCK)[outside] / np.maximum(share[outside], 0.1)
    return bool(np.median(away[outside]) <= half and blocks.max() <= worst)


def _ends_at_an_edge(kept: NDArray[np.float32], placement: NDArray[np.float64], size: tuple[int, int]) -> bool:
    """Whether the copy ends on the other where a frame, a window or another picture begins."""
    height, width = (side + 2 * EDGE for side in size)
    share = np.array([width / size[1], height / size[0]])
    wider = np.column_stack([placement[:, :2] * share, placement[:, 2] - placement[:, :2] @ ((share - 1) / 2)])
    grey = _grey(kept)
    around, known = laid_on(grey, wider, (height, width)), inside(wider, (height, width), grey.shape, 0.5)
    for turns in range(4):
        side, seen = np.rot90(around, turns), np.rot90(known, turns)
        whole = (seen[0] & seen[EDGE - 2])[2 * EDGE : -2 * EDGE]
        if whole.mean() < LEAST_SEEN:
            continue
        rows = [side[row, 2 * EDGE : -2 * EDGE][whole] for row in (EDGE - 2, EDGE + 2, EDGE + 6)]
        least, times = JUMP
        if np.abs(rows[0] - rows[1]).mean() > least + times * np.abs(rows[1] - rows[2]).mean():
            return True
    return False


def _has_details(grey: NDArray[np.float32], known: NDArray[np.bool_]) -> bool:
    """Whether a picture (height, width) is as sharp as its pixels: of a blurred one, another view looks the same."""
    once, twice = gaussian_filter(grey, 1.0), gaussian_filter(grey, 2.0)
    fine, coarse = (gaussian_filter(np.square(band), BLOCK)[known] for band in (grey - once, once - twice))
    strong = coarse >= np.quantile(coarse, 0.75) if known.any() else known[known]
    return bool(fine[strong].sum() >= LEAST_DETAIL**2 * coarse[strong].sum())


def _fitted(kept: NDArray[np.float32], copy: NDArray[np.float32], placement: NDArray[np.float64]) -> list[Fitted]:
    """Lay a picture on its copy, and fit blur, light and colours: the nearest in light, and in all three colours."""
    size = copy.shape[1], copy.shape[2]
    there = np.stack([laid_on(channel, placement, size) for channel in kept])
    known = inside(placement, size, (kept.shape[1], kept.shape[2]), 1.0)
    light = _grey(copy)
    blur, least = 0.0, np.inf
    for tried in BLURS:
        error, *_ = _lit(_grey(_blurred(there, tried))[known], light[known])
        if error > least:
            break
        blur, least = tried, error
    blurred = _blurred(there, blur)
    # Each colour is cut off by itself where it becomes too bright; compression takes colours, and hardly light. It also
    # leaves them without their edges, by which a copy may seem to have less of them.
    lights = _lit(_grey(blurred)[known], light[known]), _lit(blurred[:, known].ravel(), copy[:, known].ravel())
    tries = []
    for _, contrast, level in lights:
        if CONTRAST[0] <= contrast <= CONTRAST[1]:
            for saturation in (_saturation(blurred, copy, known, contrast), 1.0):
                pixels = _coloured(blurred, contrast, level, saturation)
                sharp = [_details(one)[known] for one in (light, contrast * _grey(there))]
                sharpness = float((sharp[0] * sharp[1]).sum() / (np.square(sharp[1]).sum() + 1e-3))
                tries.append(Fitted(pixels, known, sharpness))
    if not tries:
        return []
    in_light = [_error(_grey(fitted.pixels)[known], light[known]) for fitted in tries]
    in_colours = [_error(fitted.pixels[:, known], copy[:, known]) for fitted in tries]
    return [tries[row] for row in dict.fromkeys([int(np.argmin(in_light)), int(np.argmin(in_colours))])]


def _error(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    return float(np.square(np.minimum(np.abs(one - other), 30)).mean())


def _saturation(
    kept: NDArray[np.float32], copy: NDArray[np.float32], known: NDArray[np.bool_], contrast: float
) -> float:
    """How much of the colours of a picture, at a contrast, its copy has."""
    if np.ptp(copy, axis=0).max() <= GREYISH:
        return 0.0
    colours = contrast * (kept - _grey(kept))
    # What is black or white may have been darker or brighter.
    clear = known & (copy > 5).all(axis=0) & (copy < 250).all(axis=0)
    ridge = 25.0 * max(clear.sum(), 1)
    agreement = (colours[:, clear] * (copy - _grey(copy))[:, clear]).sum() + ridge
    return float(np.clip(agreement / (np.square(colours[:, clear]).sum() + ridge), *SATURATION))


def _coloured(kept: NDArray[np.float32], contrast: float, level: float, saturation: float) -> NDArray[np.float32]:
    """A picture in another light, and with as much colour."""
    grey = _grey(kept)
    return np.clip(contrast * (grey + saturation * (kept - grey)) + level, 0, 255).astype(np.float32)


def _unexplained(fitted: Fitted, copy: NDArray[np.float32]) -> str | None:
    """Say what is left over in the worst block."""
    if fitted.sharpness > SHARPER:
        return "sharper than the one to keep"
    known = fitted.known
    light, expected = _grey(copy), _grey(fitted.pixels)
    rest = gaussian_filter((light - expected) * known, FINE_BLUR)
    slopes = [_slopes(gaussian_filter(grey, FINE_BLUR)) for grey in (light, expected)]
    steepest = np.maximum(*(np.square(slope).sum(axis=0) for slope in slopes))
    worst, middle = _blocks(np.square(rest), steepest, known)
    if _too_much(worst, middle, LIGHT_LIMITS):
        return "other details"
    slope = np.asarray((slopes[0] + slopes[1]) / 2 * known, dtype=np.float32)
    if _too_much(float(_moved(rest, slope)[known].max(initial=0)), middle, SHIFT_LIMITS):
        return "parts have moved"
    chroma = [
        gaussian_filter(pixels - grey, (0, COLOURS, COLOURS))
        for pixels, grey in ((copy, light), (fitted.pixels, expected))
    ]
    other = gaussian_filter((copy - light - fitted.pixels + expected) * known, (0, COLOURS, COLOURS))
    steepest = np.maximum(*(np.square(np.gradient(colour, axis=(1, 2))).sum(axis=(0, 1)) for colour in chroma))
    blocks = _blocks(np.square(other).sum(axis=0), steepest, known)
    return "other colours" if _too_much(*blocks, COLOUR_LIMITS) else None


def _blocks(power: NDArray[np.float32], slopes: NDArray[np.float32], known: NDArray[np.bool_]) -> tuple[float, float]:
    """What is left over of the worst block and of the middle one, beside their slopes."""
    root = [np.sqrt(np.maximum(gaussian_filter(some, BLOCK), 0)) for some in (power, slopes)]
    blocks = (root[0] / (LEVEL + OF_SLOPE * root[1]))[known]
    return float(blocks.max(initial=0)), float(np.median(blocks)) if len(blocks) else 0.0


def _too_much(worst: float, middle: float, limits: tuple[float, float, float]) -> bool:
    """Whether more is left over of the worst block than compression, which acts on all of them, leaves."""
    base, times, most = limits
    return worst > min(most, base + times * middle)


def _moved(rest: NDArray[np.float32], slope: NDArray[np.float32]) -> NDArray[np.float32]:
    """Pixels by which a shift of the part around a pixel would best explain what is left over."""
    down, across = slope
    xx, xy, yy = (gaussian_filter(product, SURROUNDINGS) for product in (across * across, across * down, down * down))
    x, y = (gaussian_filter(rest * along, SURROUNDINGS) for along in (across, down))
    xx, yy = xx + STEADY, yy + STEADY
    distance: NDArray[np.float32] = np.hypot(yy * x - xy * y, xx * y - xy * x) / (xx * yy - xy * xy)
    return distance


def _grey(pixels: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(np.einsum("chw,c->hw", pixels, GREY), dtype=np.float32)


def _blurred(pixels: NDArray[np.float32], blur: float) -> NDArray[np.float32]:
    return np.asarray(gaussian_filter(pixels, (0, blur, blur)), dtype=np.float32) if blur else pixels


def _slopes(grey: NDArray[np.float32]) -> NDArray[np.float32]:
    """Slopes down and across, (2, height, width)."""
    return np.array(np.gradient(grey), dtype=np.float32)


def _details(grey: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(grey - gaussian_filter(grey, 1.5))


def _lit(one: NDArray[np.float32], other: NDArray[np.float32]) -> tuple[float, float, float]:
    """Contrast and level of light that make of some values others, cut off at black and white, after their error."""
    few = slice(None, None, max(1, len(one) // PIXELS_OF_AN_ESTIMATE))
    values: NDArray[np.float64] = np.stack([one[few], other[few]]).astype(np.float64)
    before, after = values

    def error(contrast: float, level: float) -> float:
        rest = np.abs(np.clip(contrast * before + level, 0, 255) - after)
        return float(np.square(np.minimum(rest, 30)).mean())

    best = min((error(contrast, 0.0), contrast, 0.0) for contrast in STARTS)
    for start in (best[1:], line(before, after)):
        contrast, level = start
        for _ in range(LIGHT_STEPS):
            expected = contrast * before + level
            away = np.abs(expected - after)
            inside = (expected > 5) & (expected < 250)
            chosen = inside & (away <= 3 * max(float(np.median(away[inside])) if inside.any() else 0.0, 1.0))
            if chosen.sum() < 16 or before[chosen].std() < 1:
                break
            contrast, level = line(before[chosen], after[chosen])
            best = min(best, (error(contrast, level), contrast, level))
    return best
