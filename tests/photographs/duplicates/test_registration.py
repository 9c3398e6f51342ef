"""One picture laid onto another."""

import numpy as np
import pytest
from PIL import Image

from deephash_pipeline.photographs.duplicates.perceptual_hash import perceptual_hashes
from deephash_pipeline.photographs.duplicates.registration import Picture, register


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
    assert found.correlation > 0.85 and found.changed < 0.05
    other = register(picture(scene(1)), picture(edit(scene(2))))
    assert other.correlation - other.changed < 0.5


def test_the_share_that_has_changed_is_seen():
    changed = scene(1)
    changed.paste(scene(2).crop((0, 0, 60, 144)), (0, 0))
    assert 0.15 < register(picture(scene(1)), picture(changed)).changed < 0.45


def test_a_flat_picture_agrees_with_nothing():
    flat = picture(Image.new("L", (192, 144), 250))
    assert register(flat, flat)[:2] == (0.0, 1.0)


def test_hashes_of_eight_orientations_are_those_of_the_picture_in_each():
    grey = np.random.default_rng(0).random((32, 32)).astype(np.float32)
    found = perceptual_hashes(grey[np.newaxis])[0]
    for transposed in (False, True):
        for rows, columns in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            turned = (grey.T if transposed else grey)[::rows, ::columns]
            place = 4 * transposed + 2 * (rows < 0) + (columns < 0)
            assert (perceptual_hashes(turned[np.newaxis].copy())[0, 0] == found[place]).all()
