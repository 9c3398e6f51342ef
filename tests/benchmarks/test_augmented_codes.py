import numpy as np
import pytest
import torch

from benchmarks.studies.approximate_search import MovedImages, augmented_codes
from deephash_pipeline.hashing import load_encoder
from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.networks import build_trunk, initialise
from deephash_pipeline.retrieval import distinct_codes


def encoded(versions, augmentation, trunk_seed=0):
    """Codes of 16 bits of 40 random images, by a random trunk."""
    generator = np.random.default_rng(3)
    images = generator.integers(0, 256, (40, 1, 28, 28), dtype=np.uint8)
    arrays = {"projection": generator.normal(size=(500, 16)).astype(np.float32), "threshold": np.zeros(16)}
    statistics = {"mean": [0.5], "standard_deviation": [0.3]}
    trunk = build_trunk("lenet")
    initialise(trunk, trunk_seed)
    inputs = MovedImages(images, statistics, torch.device("cpu"), augmentation)
    return augmented_codes(inputs, trunk, load_encoder("hash_layer", 16, arrays), seed=1, versions=versions)


def test_every_version_of_an_image_is_moved_in_its_own_way_and_again_alike():
    turned = AugmentationParameters(rotation_degrees=20)
    codes = encoded(3, turned)
    assert codes.shape == (3 * 40, 2)
    np.testing.assert_array_equal(codes, encoded(3, turned))
    versions = codes.reshape(3, 40, 2)
    assert not np.array_equal(versions[0], versions[1])
    assert not np.array_equal(versions[1], versions[2])
    assert not np.array_equal(codes, encoded(3, turned, trunk_seed=1))


@pytest.mark.parametrize("versions", [1, 2])
def test_images_that_are_not_moved_have_the_same_code_in_every_version(versions):
    still = encoded(versions, AugmentationParameters())
    np.testing.assert_array_equal(still, np.tile(still[:40], (versions, 1)))
    assert distinct_codes(still) > 1
