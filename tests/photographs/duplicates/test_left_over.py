"""What may be removed as a copy: crops beside narrow edges and brightened colours, but not what has a frame."""

from colorsys import hsv_to_rgb
from io import BytesIO

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageEnhance

from deephash_pipeline.photographs.duplicates.left_over import left_over

SIDE = 144


def pixels_of(picture):
    return np.asarray(picture.convert("RGB")).transpose(2, 0, 1).astype(np.float32)


def scene(blobs):
    """Smooth colours of some blobs, with details of single pixels."""
    rng = np.random.default_rng(3)
    grid = rng.integers(0, 256, (blobs, blobs, 3), dtype=np.uint8)
    smooth = Image.fromarray(grid).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    return Image.fromarray(np.clip(np.asarray(smooth) + rng.normal(0, 12, (SIDE, SIDE, 1)), 0, 255).astype(np.uint8))


def petals():
    """Strong colours with sharp edges, of which compression keeps half the colours' resolution."""
    rng = np.random.default_rng(0)
    picture = Image.new("RGB", (SIDE, SIDE), (40, 90, 30))
    draw = ImageDraw.Draw(picture)
    for _ in range(60):
        (x, y), r = rng.integers(0, SIDE, 2).tolist(), int(rng.integers(2, 12))
        hue, saturation, value = rng.uniform(0, 1), rng.uniform(0.6, 1), rng.uniform(0.7, 1)
        fill = tuple(int(255 * light) for light in hsv_to_rgb(hue, saturation, value))
        draw.ellipse((x - r, y - r // 2, x + r, y + r // 2), fill=fill)
    return picture


@pytest.mark.parametrize(("width", "left"), [(3, None), (12, "the one to keep has a frame or something around it")])
def test_a_crop_that_begins_beside_a_narrow_black_edge_is_explained_and_one_beside_a_frame_is_not(width, left):
    kept = Image.new("RGB", (SIDE, SIDE))
    kept.paste(scene(12), (width, 0))
    copy = kept.crop((width + 1, 0, SIDE, SIDE))
    placement = np.array([[copy.width / SIDE, 0, (width + 1) / SIDE], [0, 1, 0]])
    assert left_over(pixels_of(kept), pixels_of(copy), placement) == left


@pytest.mark.parametrize(("side", "left"), [(SIDE, None), (32, "without details by which to tell")])
def test_nothing_is_a_copy_of_an_enlarged_picture(side, left):
    kept = pixels_of(petals().resize((side, side)).resize((SIDE, SIDE), Image.Resampling.BICUBIC))
    assert left_over(kept, 0.9 * kept, np.eye(2, 3)) == left


def test_strong_colours_that_are_brighter_and_compressed_are_explained():
    kept = petals()
    file = BytesIO()
    ImageEnhance.Brightness(kept).enhance(1.3).save(file, "JPEG", quality=90)
    assert left_over(pixels_of(kept), pixels_of(Image.open(file)), np.eye(2, 3)) is None
