"""Images on their way into a network: chosen, moved, normalised, channels last; in any process."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.augmentation import AugmentationParameters, augment, random_crop
from deephash_pipeline.images.inputs import ImageInputs

CPU = torch.device("cpu")
MOVES = AugmentationParameters(shift_pixels=1, rotation_degrees=10, horizontal_flip=True)
STATISTICS = {"mean": [0.2, 0.4, 0.6], "standard_deviation": [0.1, 0.2, 0.3]}


def images(channels=3):
    return np.random.default_rng(0).integers(0, 256, (20, channels, 6, 5)).astype(np.uint8)


def statistics(channels=3):
    return {name: values[:channels] for name, values in STATISTICS.items()}


def normalised(pixels):
    mean, deviation = (
        torch.tensor(values[: pixels.shape[1]]).view(1, -1, 1, 1)
        for values in (STATISTICS["mean"], STATISTICS["standard_deviation"])
    )
    return (pixels.float() / 255 - mean) / deviation


@pytest.mark.parametrize("channels", [1, 3])
@given(indices=st.lists(st.integers(0, 19), min_size=1, max_size=30))
def test_a_batch_holds_the_chosen_images_normalised(channels, indices):
    batch = ImageInputs(images(channels), statistics(channels), CPU).batch(np.array(indices))
    assert torch.equal(batch, normalised(torch.from_numpy(images(channels)[indices])))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("seed", [None, 3])
def test_channels_are_last_in_memory_and_the_strides_say_so(channels, seed):
    batch = ImageInputs(images(channels), statistics(channels), CPU, MOVES).batch(np.arange(4), seed)
    assert batch.shape == (4, channels, 6, 5)
    assert batch.stride() == (30 * channels, 1, 5 * channels, channels)


def test_images_are_moved_before_they_are_normalised_so_that_no_colour_is_invented():
    inputs = ImageInputs(images(), STATISTICS, CPU, MOVES)
    expected = normalised(augment(torch.from_numpy(images()).float(), MOVES, 3, 0))
    torch.testing.assert_close(inputs.batch(np.arange(20), 3), expected, atol=1e-5, rtol=0)


def test_without_a_seed_or_without_augmentation_nothing_moves():
    still = ImageInputs(images(), STATISTICS, CPU)
    moving = ImageInputs(images(), STATISTICS, CPU, MOVES)
    chosen = np.arange(20)
    assert torch.equal(moving.batch(chosen), still.batch(chosen, 3))
    assert not torch.equal(moving.batch(chosen, 3), still.batch(chosen, 3))


def test_a_batch_in_pieces_is_the_batch():
    inputs = ImageInputs(images(), STATISTICS, CPU, MOVES)
    order = np.random.default_rng(1).permutation(20)
    pieces = [inputs.batch(order[first : first + 7], 3, first) for first in (0, 7, 14)]
    assert torch.equal(torch.cat(pieces), inputs.batch(order, 3))


def test_the_images_themselves_are_not_touched():
    given = images()
    ImageInputs(given, STATISTICS, CPU, MOVES).batch(np.arange(20), 3)
    np.testing.assert_array_equal(given, images())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("share", [0.25, 0.0])
@pytest.mark.parametrize("size", [None, (4, 3)])
def test_a_cuda_device_gets_the_same_batch_whether_or_not_it_holds_all_images(share, size, monkeypatch):
    monkeypatch.setattr("deephash_pipeline.images.inputs.SHARE_OF_MEMORY", share)
    on_gpu = ImageInputs(images(), STATISTICS, torch.device("cuda"), MOVES, size).batch(np.arange(20), 3)
    assert on_gpu.is_cuda and on_gpu.is_contiguous(memory_format=torch.channels_last)
    on_cpu = ImageInputs(images(), STATISTICS, CPU, MOVES, size).batch(np.arange(20), 3)
    torch.testing.assert_close(on_gpu.cpu(), on_cpu, atol=1e-3, rtol=0)


def test_of_larger_images_the_centre_counts_and_in_training_a_random_window():
    inputs = ImageInputs(images(), STATISTICS, CPU, MOVES, size=(4, 3))
    pixels = torch.from_numpy(images())
    assert torch.equal(inputs.batch(np.arange(20)), normalised(pixels[:, :, 1:5, 1:4]))
    expected = normalised(augment(random_crop(pixels, (4, 3), 3, 7).float(), MOVES, 3, 7))
    torch.testing.assert_close(inputs.batch(np.arange(20), 3, 7), expected, atol=1e-5, rtol=0)


def test_what_is_never_moved_is_not_cropped_at_random_either():
    inputs = ImageInputs(images(), STATISTICS, CPU, size=(4, 3))
    assert torch.equal(inputs.batch(np.arange(20), 3), inputs.batch(np.arange(20)))


@pytest.mark.parametrize("seed", [None, 3])
def test_images_of_the_size_of_the_network_are_not_cropped(seed):
    chosen = np.arange(20)
    cropped = ImageInputs(images(), STATISTICS, CPU, MOVES, size=(6, 5)).batch(chosen, seed)
    assert torch.equal(cropped, ImageInputs(images(), STATISTICS, CPU, MOVES).batch(chosen, seed))


@pytest.mark.parametrize("size", [(7, 5), (6, 6)])
def test_images_smaller_than_the_network_takes_are_refused_with_the_remedy(size):
    message = f"takes images of {size[0]}x{size[1]} pixels, those stored have 6x5: set `image_size`"
    with pytest.raises(InputError, match=message):
        ImageInputs(images(), STATISTICS, CPU, size=size)
