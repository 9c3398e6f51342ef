"""A second look at a copy of the same frame: other words on one form, another thing before one camera, other colours.

What is compared first has 64 pixels on its longer side, where a line of text is less than a pixel.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from deephash_pipeline.images.batches import image_batches
from deephash_pipeline.images.registration import LONGER_SIDE, Picture, resized, scaled
from deephash_pipeline.search.duplicates.fingerprints import GREY
from deephash_pipeline.search.duplicates.groups import Photo

LARGEST_SIDE = 1024
SAME_SHAPE, SAME_FRAME = 0.02, 0.85
"""Ratio of the sides and correlation of the small pictures from which one is the other's frame."""
FINE, COARSE, AROUND = 1.0, 6.0, 3.0
"""Of details, in pixels: those that are left of an edit, and of what is compared around each."""
DETAILED, NOISE, ALIKE, CHANGED = 6.0, 4.0, 0.5, 0.0012
"""Greys of details that count and of noise; correlation of the same ones; share of pixels that may have others.

Of 72 photographs none had a larger share after JPEG 30, half size or a change of colours, ten after much blur.
"""
COLOURFUL, SAME_COLOURS = 0.02, 0.2
"""Share of pixels of colour 30, of 255, and correlation of colours: at least .34 in warmer light."""


def difference(one: Photo, other: Photo, details: bool = True) -> str | None:
    """Say what tells two files of nearly one picture apart; None for nothing, and where one is cropped or turned.

    Args:
        one: a file.
        other: a file of the same picture, as far as 64 pixels tell.
        details: False to look at colours alone.
    """
    if abs(one.width * other.height / (one.height * other.width) - 1) > SAME_SHAPE:
        return None
    side = min(LARGEST_SIDE, max(one.width, one.height), max(other.width, other.height))
    width, height = scaled((one.width, one.height), side / max(one.width, one.height))
    [batch] = image_batches([one.path, other.path], (3, height, width), 2, "skip")
    if len(batch.pixels) < 2:
        return None
    first, second = batch.pixels.astype(np.float32)
    greys = [np.einsum("chw,c->hw", pixels, GREY) for pixels in (first, second)]
    small = scaled((width, height), LONGER_SIDE / max(width, height))
    here, there = (Picture(resized(grey, small) / np.float32(255)).details for grey in greys)
    if _correlation(here, there) < SAME_FRAME:
        return None
    chroma = [gaussian_filter(rgb - grey, (0, FINE, FINE)) for rgb, grey in zip((first, second), greys, strict=True)]
    colourful = [(np.square(colour).sum(axis=0) > 30**2).mean() for colour in chroma]
    if min(colourful) > COLOURFUL and _correlation(*chroma) < SAME_COLOURS:
        return "other colours: look at it"
    return "other details: look at it" if details and _changed(*greys) > CHANGED else None


def _correlation(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    return float((one * other).sum() / np.sqrt((one * one).sum() * (other * other).sum() + 1e-6))


def _changed(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Share of pixels around which details of two grey pictures, in [0, 255], are not the same."""
    details = [gaussian_filter(grey, FINE) for grey in (one, other)]
    details = [fine - gaussian_filter(fine, COARSE) for fine in details]
    powers = [gaussian_filter(detail * detail, AROUND) for detail in details]
    agreement = gaussian_filter(details[0] * details[1], AROUND) / (np.sqrt(powers[0] * powers[1]) + NOISE)
    # What a brighter or darker copy has lost is no other detail.
    lost = gaussian_filter((_lost(one, other) | _lost(other, one)).astype(np.float32), AROUND) > 0.05
    return float(((np.sqrt(np.maximum(*powers)) > DETAILED) & (agreement < ALIKE) & ~lost).mean())


def _lost(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Where the light of the other picture takes greys of the one out of [0, 255]."""
    inside = (one > 5) & (one < 250) & (other > 5) & (other < 250)
    if inside.mean() < 0.05 or one[inside].std() < 1:
        return np.zeros(one.shape, np.bool_)
    slope, level = np.polyfit(one[inside], other[inside], 1)
    lit = slope * one + level
    return np.asarray((lit > 260) | (lit < -5))
