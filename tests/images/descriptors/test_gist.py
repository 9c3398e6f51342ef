"""GIST against a slow transcription of its formulas, and what it must and must not depend on."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.descriptors import gist as module
from deephash_pipeline.images.descriptors.gist import GistParameters, gist

CPU = torch.device("cpu")
PAPER = GistParameters()


def random_images(count, size, channels=3):
    return np.random.default_rng(size).integers(0, 256, (count, channels, size, size), dtype=np.uint8)


def integer_frequencies(size):
    one = np.fft.ifftshift(np.arange(size) - size // 2).astype(float)
    return one[:, None] * np.ones(size), one[None] * np.ones((size, 1))


def slow_gist(image, blocks, orientations):
    """The formulas one after the other, for one image, with complex transforms of full size in float64."""
    size = image.shape[1]
    grey = image.astype(float).mean(axis=0)
    grey = 255 * (grey - grey.min()) / (grey.max() - grey.min())
    grey = np.pad(np.log(grey + 1), 5, mode="symmetric")
    down, across = integer_frequencies(size + 10)
    low_pass = np.exp(-(down**2 + across**2) / (4 / np.sqrt(np.log(2))) ** 2)
    grey = grey - np.fft.ifft2(np.fft.fft2(grey) * low_pass).real
    grey = grey / (0.2 + np.sqrt(np.abs(np.fft.ifft2(np.fft.fft2(grey**2) * low_pass))))
    spectrum = np.fft.fft2(np.pad(grey[5:-5, 5:-5], 32, mode="symmetric"))
    down, across = integer_frequencies(size + 64)
    edges = np.floor(np.linspace(0, size, blocks + 1)).astype(int)
    features = []
    for scale, number in enumerate(orientations):
        for orientation in range(number):
            turned = np.angle(across + 1j * down) + np.pi * orientation / number
            turned = np.where(turned < -np.pi, turned + 2 * np.pi, turned)
            turned = np.where(turned > np.pi, turned - 2 * np.pi, turned)
            radius = np.sqrt(across**2 + down**2) / (size + 64) / (0.3 / 1.85**scale)
            response = np.exp(-10 * 0.35 * (radius - 1) ** 2 - 2 * (16 * number**2 / 32**2) * np.pi * turned**2)
            magnitude = np.abs(np.fft.ifft2(spectrum * response))[32:-32, 32:-32]
            for left, right in pairwise(edges):
                for top, bottom in pairwise(edges):
                    features.append(magnitude[top:bottom, left:right].mean())
    return np.array(features)


@pytest.mark.parametrize(
    ("size", "channels", "blocks", "orientations"),
    [(32, 3, 5, (8, 8, 8, 8)), (28, 1, 4, (8, 8, 4)), (19, 3, 3, (1, 5)), (8, 2, 8, (2,)), (48, 1, 1, (3, 3, 3))],
)
def test_it_equals_its_formulas(size, channels, blocks, orientations):
    images = random_images(3, size, channels)
    parameters = GistParameters(blocks=blocks, orientations_per_scale=orientations)
    expected = [slow_gist(image, blocks, orientations) for image in images]
    np.testing.assert_allclose(gist(images, parameters, CPU), expected, rtol=1e-4, atol=1e-6)


def test_batches_and_memory_maps_make_no_difference(tmp_path, monkeypatch):
    np.save(tmp_path / "images.npy", random_images(7, 12))
    images = np.load(tmp_path / "images.npy", mmap_mode="r", allow_pickle=False)
    at_once = gist(images, PAPER, CPU)
    monkeypatch.setattr(module, "PIXELS_PER_BATCH", 3 * (12 + 64) ** 2)
    np.testing.assert_allclose(gist(images, PAPER, CPU), at_once, rtol=1e-5, atol=1e-6)
    assert at_once.dtype == np.float32
    assert gist(images[:0], PAPER, CPU).shape == (0, 800)


def test_an_image_of_one_colour_has_no_features():
    assert not gist(np.full((1, 3, 32, 32), 77, dtype=np.uint8), PAPER, CPU).any()


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 3, 32, 31), dtype=np.uint8), "32 x 31 pixels"),
        (np.zeros((2, 3, 4, 4), dtype=np.uint8), "at least 5 blocks"),
    ],
)
def test_it_refuses_what_it_cannot_describe(images, message):
    with pytest.raises(InputError, match=message):
        gist(images, PAPER, CPU)


@pytest.mark.parametrize("changes", [{"blocks": 0}, {"orientations_per_scale": ()}, {"orientations_per_scale": (8, 0)}])
def test_parameters_out_of_range_are_refused(changes):
    with pytest.raises(ValidationError):
        GistParameters(**changes)
