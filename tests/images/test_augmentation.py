import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.randomness import uniform_numbers
from deephash_pipeline.images.augmentation import AugmentationParameters, augment

EVERYTHING = AugmentationParameters(shift_pixels=2, horizontal_flip=True, rotation_degrees=20, scale_range=0.2)


def batch(count=6, height=7, width=9):
    return torch.rand(count, 3, height, width, generator=torch.Generator().manual_seed(1))


def moved_pixel_by_pixel(image, parameters, draws):
    """Look up every pixel of the result where the definition says, one after the other."""
    rotation, scale, flip, across, down, turn = draws
    angle = math.radians(parameters.rotation_degrees) * (2 * rotation - 1)
    angle += math.floor(4 * turn) * math.pi / 2 if parameters.quarter_turns else 0
    shrink = 1 / (1 + parameters.scale_range * (2 * scale - 1))
    mirror = -1 if parameters.horizontal_flip and flip < 0.5 else 1
    across, down = (
        math.floor((2 * parameters.shift_pixels + 1) * draw) - parameters.shift_pixels for draw in (across, down)
    )
    channels, height, width = image.shape
    result = np.empty((channels, height, width))
    for row in range(height):
        for column in range(width):
            x, y = column - (width - 1) / 2, row - (height - 1) / 2
            old_x = mirror * shrink * (math.cos(angle) * x - math.sin(angle) * y) + (width - 1) / 2 + across
            old_y = shrink * (math.sin(angle) * x + math.cos(angle) * y) + (height - 1) / 2 + down
            old_x, old_y = min(max(old_x, 0), width - 1), min(max(old_y, 0), height - 1)
            left, top = min(int(old_x), width - 2), min(int(old_y), height - 2)
            right_share, lower_share = old_x - left, old_y - top
            for channel in range(channels):
                four = image[channel, top : top + 2, left : left + 2].numpy()
                result[channel, row, column] = (
                    np.array([1 - lower_share, lower_share]) @ four @ np.array([1 - right_share, right_share])
                )
    return torch.from_numpy(result)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**62),
    shift_pixels=st.integers(0, 3),
    horizontal_flip=st.booleans(),
    quarter_turns=st.booleans(),
    rotation_degrees=st.sampled_from([0.0, 7.0, 180.0]),
    scale_range=st.sampled_from([0.0, 0.3]),
    first=st.integers(0, 100),
)
def test_every_pixel_comes_from_where_the_definition_says(seed, first, **changes):
    parameters = AugmentationParameters(**changes)
    images = batch(count=2, height=4, width=6).double()
    draws = uniform_numbers(seed, torch.arange(first, first + 2), 6).tolist()
    expected = torch.stack([moved_pixel_by_pixel(*pair) for pair in zip(images, [parameters] * 2, draws, strict=True)])
    torch.testing.assert_close(augment(images, parameters, seed, first), expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize("parameters", [EVERYTHING, AugmentationParameters(shift_pixels=2, horizontal_flip=True)])
@pytest.mark.parametrize("size", [1, 4])
def test_a_batch_in_pieces_is_moved_like_the_whole_to_the_last_bit(parameters, size):
    images = batch(count=12)
    whole = augment(images, parameters, 3, first=100)
    pieces = [augment(images[start : start + size], parameters, 3, 100 + start) for start in range(0, 12, size)]
    assert torch.equal(torch.cat(pieces), whole)


@pytest.mark.parametrize("parameters", [EVERYTHING, AugmentationParameters(shift_pixels=2, horizontal_flip=True)])
def test_the_layout_of_memory_makes_no_difference(parameters):
    images = batch()
    channels_last = images.contiguous(memory_format=torch.channels_last)
    assert torch.equal(augment(channels_last, parameters, 3), augment(images, parameters, 3))


def test_all_shifts_are_equally_frequent_and_independent_of_the_flip():
    image = torch.arange(49.0).view(1, 1, 7, 7)
    moved = augment(image.expand(5000, -1, -1, -1), AugmentationParameters(shift_pixels=1, horizontal_flip=True), 0)
    # The centre of the result gives the shift, its right neighbour the flip.
    centre, neighbour = moved[:, 0, 3, 3].long(), moved[:, 0, 3, 4].long()
    kinds = torch.unique(torch.stack([centre, neighbour - centre], dim=1), dim=0, return_counts=True)[1]
    assert len(kinds) == 3 * 3 * 2
    assert float((kinds - 5000 / 18).square().sum() / (5000 / 18)) < 40.8  # chi-square, 17 degrees, p = 0.001


def test_parameters_that_allow_nothing_return_the_batch_itself():
    images = batch()
    assert augment(images, AugmentationParameters(), 0) is images


def test_the_generator_alone_decides_the_draw():
    torch.manual_seed(5)
    first = augment(batch(), EVERYTHING, 3)
    torch.manual_seed(6)
    assert torch.equal(first, augment(batch(), EVERYTHING, 3))
    assert not torch.equal(first, augment(batch(), EVERYTHING, 4))


@pytest.mark.parametrize("precision", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_shape_and_precision_are_kept(precision):
    images = batch().to(precision)
    moved = augment(images, EVERYTHING, 0)
    assert moved.shape == images.shape and moved.dtype == precision


def test_an_empty_batch_stays_empty():
    assert augment(batch(count=0), EVERYTHING, 0).shape == (0, 3, 7, 9)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_device_does_not_change_the_moves():
    on_cpu = augment(batch(), EVERYTHING, 0)
    on_gpu = augment(batch().cuda(), EVERYTHING, 0)
    assert on_gpu.is_cuda
    torch.testing.assert_close(on_gpu.cpu(), on_cpu, atol=1e-4, rtol=0)


@pytest.mark.parametrize("images", [torch.zeros(2, 1, 4, 4, dtype=torch.uint8), torch.zeros(1, 4, 4)])
def test_bytes_and_single_images_are_refused(images):
    with pytest.raises(InputError, match="floating point of shape"):
        augment(images, EVERYTHING, 0)


def test_quarter_turns_of_a_square_are_those_of_numpy_all_four_of_them():
    images = batch(count=40, height=8, width=8)
    turned = augment(images, AugmentationParameters(quarter_turns=True), seed=5)
    kinds = [
        next(turn for turn in range(4) if torch.equal(new, torch.rot90(old, turn, (1, 2))))
        for old, new in zip(images, turned, strict=True)
    ]
    assert set(kinds) == {0, 1, 2, 3}


def test_colours_change_by_a_factor_of_each_channel_and_a_brightness_of_all_within_their_range():
    images = 255 * batch(count=50)
    coloured = augment(images, AugmentationParameters(colour_range=0.2), seed=5)
    for old, new in zip(images.double().flatten(2), coloured.double().flatten(2), strict=True):
        factors, added = np.polynomial.polynomial.polyfit(old[0], new[0], 1)[::-1]
        assert 0.8 <= factors <= 1.2
        assert abs(added) <= 0.2 * 255
        for channel in (1, 2):
            assert np.polynomial.polynomial.polyfit(old[channel], new[channel], 1)[0] == pytest.approx(added, abs=1e-2)
    pieces = [
        augment(images[part], AugmentationParameters(colour_range=0.2), 5, part.start)
        for part in (slice(0, 20), slice(20, 50))
    ]
    torch.testing.assert_close(torch.cat(pieces), coloured, rtol=0, atol=0)
