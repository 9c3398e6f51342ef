import numpy as np
import pytest
from sklearn.datasets import load_digits

from deephash_pipeline.images.sources.digits import read_digits


@pytest.mark.parametrize("image_size", [8, 28])
def test_digits_are_one_split_of_1797_grey_images(image_size):
    collection = read_digits(image_size)
    assert list(collection.splits) == ["all"]
    assert collection.splits["all"].images.shape == (1797, 1, image_size, image_size)
    assert collection.class_names == list("0123456789")
    assert collection.splits["all"].ids[0] == "digits/0000"


def test_at_their_own_size_digits_are_the_original_values_scaled_to_bytes():
    images = read_digits(8).splits["all"].images
    np.testing.assert_allclose(images[:, 0] * (16 / 255), load_digits().images, atol=0.5 * 16 / 255 + 1e-9)
    assert images.max() == 255


def test_enlarged_digits_keep_their_mean_brightness():
    small, large = (read_digits(size).splits["all"].images.mean(axis=(1, 2, 3)) for size in (8, 28))
    np.testing.assert_allclose(large, small, atol=3.0)
