"""Dense SIFT against a slow transcription, its grid, and the words that are counted."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from scipy.ndimage import gaussian_filter

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.descriptors import sift_bag
from deephash_pipeline.images.descriptors.sift_bag import SiftBagParameters, bag_of_words, dense_sift, fit_vocabulary

CPU = torch.device("cpu")
SMALL = SiftBagParameters(words=6, cell_sizes=(2, 4), step=4)


def smooth_images(count, height=32, width=32, seed=0):
    noise = np.random.default_rng(seed).normal(size=(count, 1, height, width))
    waves = gaussian_filter(noise, (0, 0, 2, 2), mode="wrap")
    return np.rint(128 + 30 * waves / waves.std()).clip(0, 255).astype(np.uint8)


def stripes(count, upright, seed=0):
    """Stripes of random phases and periods."""
    generator = np.random.default_rng(seed)
    phase, period = generator.uniform(0, 7, (count, 1)), generator.uniform(6, 8, (count, 1))
    wave = np.rint(128 + 100 * np.sin(2 * np.pi * (np.arange(32) + phase) / period)).astype(np.uint8)
    images = np.broadcast_to(wave[:, None, None, :], (count, 1, 32, 32))
    return images if upright else images.swapaxes(2, 3)


def slow_sift(pixels, row, column, cell):
    """Lowe's descriptor of one upright patch, gradient by gradient; then its square roots."""
    smooth = gaussian_filter(pixels.astype(float), np.sqrt(max((cell / 6) ** 2 - 0.5**2, 0.01)), mode="mirror")
    histogram = np.zeros((4, 4, 8))
    for y in range(1, pixels.shape[0] - 1):
        for x in range(1, pixels.shape[1] - 1):
            right, up = smooth[y, x + 1] - smooth[y, x - 1], smooth[y - 1, x] - smooth[y + 1, x]
            down_cells, across_cells = (y - row) / cell, (x - column) / cell
            weight = np.hypot(right, up) * np.exp(-(down_cells**2 + across_cells**2) / (2 * 2**2))
            direction = np.arctan2(up, right) / (2 * np.pi) * 8
            for i in range(4):
                for j in range(4):
                    for k in range(8):
                        turn = abs((direction - k + 4) % 8 - 4)
                        shares = [1 - abs(down_cells + 1.5 - i), 1 - abs(across_cells + 1.5 - j), 1 - turn]
                        histogram[i, j, k] += weight * np.prod(np.maximum(shares, 0))
    histogram = np.minimum(histogram, 0.2 * np.linalg.norm(histogram))
    return np.sqrt(histogram / histogram.sum()).ravel()


@pytest.mark.parametrize("cell", [2, 4])
def test_descriptors_equal_a_slow_transcription(cell):
    image = smooth_images(1, 16, 20)
    found = next(dense_sift(image, SiftBagParameters(cell_sizes=(cell,), step=4)))
    half = 2 * cell
    centres = [(row, column) for row in range(half, 17 - half, 4) for column in range(half, 21 - half, 4)]
    assert len(found) == len(centres)
    for descriptor, (row, column) in list(zip(found, centres, strict=True))[:: 1 + len(centres) // 3]:
        expected = slow_sift(image[0, 0], row, column, cell)
        # OpenCV rounds its values to 1/512, whose square roots differ most near zero.
        np.testing.assert_allclose(descriptor**2, expected**2, atol=1e-3)
        assert descriptor @ expected > 0.999


def test_descriptors_have_length_one_and_ignore_brightness_and_contrast():
    image = smooth_images(1) // 4
    dim, bright = (next(dense_sift(variant, SMALL)) for variant in (image, 3 * image + 20))
    assert dim.shape == (7 * 7 + 5 * 5, 128)
    assert dim.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(dim, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(dim**2, bright**2, atol=1e-3)


def test_what_the_steps_leave_over_goes_to_both_edges():
    image = smooth_images(1, 19, 22)
    once = next(dense_sift(image, SiftBagParameters(cell_sizes=(4,), step=100)))
    cut = next(dense_sift(image[:, :, 1:17, 3:19], SiftBagParameters(cell_sizes=(4,), step=1)))
    assert once.shape == cut.shape == (1, 128)
    # A margin, which the cut lacks, has some share in the outer cells.
    assert float(once[0] @ cut[0]) > 0.98


def test_colours_are_averaged_and_large_images_reduced():
    small = smooth_images(1)
    large = np.kron(small, np.ones((2, 2), dtype=np.uint8))
    coloured = np.concatenate([large - 9, large, large + 9], axis=1)
    reduced = next(dense_sift(coloured, SMALL.model_copy(update={"longest_side": 32})))
    np.testing.assert_array_equal(reduced, next(dense_sift(small, SMALL)))


def test_patches_of_low_contrast_are_left_out():
    image = smooth_images(1)
    image[..., :20] = 77 + np.arange(20) // 2 % 2
    everything, contrasty = (
        next(dense_sift(image, SiftBagParameters(cell_sizes=(2,), step=4, contrast_threshold=threshold)))
        for threshold in (0.0, 0.01)
    )
    assert len(everything) == 7 * 7
    # Patches start at 0, 4, ..., 24; those at 0, 4, 8 and 12 end before column 20.
    np.testing.assert_array_equal(contrasty, everything.reshape(7, 7, 128)[:, 4:].reshape(-1, 128))


def test_an_image_of_one_colour_has_no_descriptor_and_an_empty_bag():
    images = np.full((1, 3, 32, 32), 77, dtype=np.uint8)
    parameters = SMALL.model_copy(update={"contrast_threshold": 0.0})
    assert next(dense_sift(images, parameters)).shape == (0, 128)
    assert not bag_of_words(images, np.ones((6, 128), dtype=np.float32), parameters, CPU).any()


def test_a_bag_counts_the_nearest_words(tmp_path, monkeypatch):
    np.save(tmp_path / "images.npy", smooth_images(5))
    images = np.load(tmp_path / "images.npy", mmap_mode="r", allow_pickle=False)
    vocabulary = np.abs(np.random.default_rng(1).normal(0, 0.09, (6, 128))).astype(np.float32)
    bags = bag_of_words(images, vocabulary, SMALL, CPU)
    assert bags.dtype == np.float32
    for bag, descriptors in zip(bags, dense_sift(images, SMALL), strict=True):
        nearest = np.square(descriptors[:, None] - vocabulary).sum(axis=2).argmin(axis=1)
        np.testing.assert_allclose(bag**2, np.bincount(nearest, minlength=6) / len(descriptors), atol=1e-6)
    monkeypatch.setattr(sift_bag, "DESCRIPTORS_PER_BLOCK", 10)
    np.testing.assert_array_equal(bag_of_words(images, vocabulary, SMALL, CPU), bags)


def test_a_word_lies_at_the_mean_of_the_descriptors_nearest_to_it():
    images = np.concatenate([stripes(20, upright=True), stripes(20, upright=False)])
    vocabulary = fit_vocabulary(images, SMALL.model_copy(update={"words": 2}), seed=0)
    means = [np.concatenate(list(dense_sift(half, SMALL))).mean(axis=0) for half in (images[:20], images[20:])]
    assert vocabulary.dtype == np.float32
    distances = np.linalg.norm(vocabulary[:, None] - means, axis=2)
    assert sorted(distances.argmin(axis=1)) == [0, 1]
    assert distances.min(axis=1).max() < 0.05 < 0.5 < distances.max(axis=1).min()


def test_the_seed_alone_decides_the_vocabulary():
    images = smooth_images(12)
    few = SMALL.model_copy(update={"vocabulary_images": 4, "descriptors_per_image": 10})
    first = fit_vocabulary(images, few, seed=5)
    np.testing.assert_array_equal(fit_vocabulary(images, few, seed=5), first)
    assert np.abs(fit_vocabulary(images, few, seed=6) - first).max() > 0.01


def test_the_sample_has_as_many_descriptors_as_asked_for():
    few = SMALL.model_copy(update={"words": 41, "vocabulary_images": 4, "descriptors_per_image": 10})
    with pytest.raises(InputError, match="the 4 images sampled give 40 descriptors for 41 words"):
        fit_vocabulary(smooth_images(12), few, seed=0)


def test_it_refuses_what_it_cannot_describe():
    images, message = np.zeros((2, 3, 32, 15), dtype=np.uint8), "take 16 x 16: choose smaller cell_sizes"
    with pytest.raises(InputError, match=message):
        dense_sift(images, SMALL)
    with pytest.raises(InputError, match=message):
        fit_vocabulary(images, SMALL, seed=0)
    with pytest.raises(InputError, match=message):
        bag_of_words(images, np.zeros((6, 128), dtype=np.float32), SMALL, CPU)


@pytest.mark.parametrize("vocabulary", [np.zeros((6, 128)), np.zeros((5, 128), dtype=np.float32)])
def test_a_vocabulary_of_other_parameters_is_refused(vocabulary):
    with pytest.raises(InputError, match="fit it again"):
        bag_of_words(smooth_images(1), vocabulary, SMALL, CPU)


def test_without_images_there_are_no_words():
    nothing = smooth_images(1)[:0]
    with pytest.raises(InputError, match="give 0 descriptors"):
        fit_vocabulary(nothing, SMALL, seed=0)
    assert bag_of_words(nothing, np.zeros((6, 128), dtype=np.float32), SMALL, CPU).shape == (0, 6)


@pytest.mark.parametrize("changes", [{"words": 0}, {"cell_sizes": ()}, {"cell_sizes": (1,)}, {"step": 0}])
def test_parameters_out_of_range_are_refused(changes):
    with pytest.raises(ValidationError):
        SiftBagParameters(**changes)
