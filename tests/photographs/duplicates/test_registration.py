"""One picture laid onto another."""

from io import BytesIO
from itertools import combinations

import numpy as np
import pytest
from PIL import Image, ImageDraw

from deephash_pipeline.photographs.duplicates.frequencies import (
    frequencies_in,
    low_frequencies,
    perceptual_hashes,
    placement_in,
)
from deephash_pipeline.photographs.duplicates.levels import Level
from deephash_pipeline.photographs.duplicates.registration import register
from deephash_pipeline.photographs.duplicates.small_picture import Picture


def scene(seed, size=(192, 144)):
    rng = np.random.default_rng(seed)
    coarse = [
        Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)).resize(size, Image.Resampling.BICUBIC)
        for shape in ((9, 12), (24, 32))
    ]
    return Image.blend(*coarse, 0.5)


def picture(image):
    small = image.resize([round(64 * side / max(image.size)) for side in image.size], Image.Resampling.BILINEAR)
    return Picture(np.asarray(small, dtype=np.float32) / 255)


@pytest.mark.parametrize(
    "edit",
    [
        lambda image: image.rotate(33, Image.Resampling.BICUBIC, expand=True),
        lambda image: image.crop((40, 20, 180, 125)),
        lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        lambda image: image.transpose(Image.Transpose.ROTATE_270),
        lambda image: image.point(lambda value: value // 2 + 90),
    ],
    ids=["turned", "cropped", "mirrored", "on its side", "brighter"],
)
def test_a_picture_agrees_with_its_edits_and_with_no_other(edit):
    found = register(picture(scene(1)), picture(edit(scene(1))))
    assert found.agreement > Level.DEFAULT.agreement
    other = register(picture(scene(1)), picture(edit(scene(2))))
    assert other.agreement < 0.5


@pytest.mark.parametrize(("width", "least", "most"), [(20, 0.9, 1.0), (60, 0.7, 0.84), (110, 0.5, 0.65)])
def test_the_share_that_has_changed_counts(width, least, most):
    changed = scene(1)
    changed.paste(scene(2).crop((0, 0, width, 144)), (0, 0))
    assert least < register(picture(scene(1)), picture(changed)).agreement < most


def test_smooth_pictures_have_some_details_in_common_and_are_not_taken_for_copies_as_usual():
    smooth = [np.random.default_rng(seed).random((4, 4), dtype=np.float32) for seed in range(12)]
    pictures = [Picture(np.asarray(Image.fromarray(few).resize((64, 64)))) for few in smooth]
    found = [register(one, other).agreement for one, other in combinations(pictures, 2)]
    assert np.median(found) > Level.LOOSE.agreement and np.mean(np.array(found) > Level.DEFAULT.agreement) < 0.1


def test_a_flat_picture_agrees_with_nothing():
    flat = picture(Image.new("L", (192, 144), 250))
    assert register(flat, flat).agreement == -1


def turned_as(image, orientation):
    turned = image.transpose(Image.Transpose.TRANSPOSE) if orientation & 4 else image
    turned = turned.transpose(Image.Transpose.FLIP_TOP_BOTTOM) if orientation & 2 else turned
    return turned.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if orientation & 1 else turned


@pytest.mark.parametrize("orientation", range(8))
def test_frequencies_in_an_orientation_are_those_of_the_picture_in_it(orientation):
    grey = Image.fromarray(np.random.default_rng(0).random((48, 64)).astype(np.float32))
    turned = turned_as(grey, orientation)
    found = frequencies_in(low_frequencies([np.asarray(grey)]), orientation)
    expected = low_frequencies([np.asarray(turned)])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert (perceptual_hashes(found) == perceptual_hashes(expected)).all()
    # A point of the turned picture is where the map says.
    x, y = 0.3, 0.8
    across, down = placement_in(orientation) @ [x, y, 1]
    here = turned.getpixel((int(x * turned.width), int(y * turned.height)))
    assert here == grey.getpixel((int(across * grey.width), int(down * grey.height)))


@pytest.mark.parametrize("orientation", [0, 5])
def test_what_strong_compression_has_left_of_a_small_picture_agrees_with_it_in_its_frame(orientation):
    small, file = scene(1).resize((36, 27), Image.Resampling.LANCZOS), BytesIO()
    noise = np.random.default_rng(0).normal(0, 30, (27, 36))
    Image.fromarray(np.clip(np.asarray(small) + noise, 0, 255).astype(np.uint8)).save(file, "JPEG", quality=10)
    found = register(picture(turned_as(Image.open(file), orientation)), picture(scene(1)))
    assert 0.58 < found.agreement < 0.7
    np.testing.assert_array_equal(found.placement, placement_in(orientation))
    assert register(picture(Image.open(file)), picture(scene(2))).agreement < 0.5


def test_a_text_leaves_most_of_the_agreement_of_all_else():
    captioned = scene(1)
    draw = ImageDraw.Draw(captioned)
    draw.rectangle((0, 115, 192, 138), fill=0)
    draw.text((10, 115), "holiday, 2019", fill=255, font_size=20)
    found = register(picture(captioned), picture(scene(1)))
    assert 0.7 < found.agreement < Level.DEFAULT.agreement
