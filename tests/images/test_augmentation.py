import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from deephash_pipeline.errors import InputError
from deephash_pipeline.images.augmentation import AugmentationParameters, augment

EVERYTHING = AugmentationParameters(shift_pixels=2, horizontal_flip=True, rotation_degrees=20, scale_range=0.2)


def batch(count: int = 6, height: int = 7, width: int = 9) -> Tensor:
    return torch.rand(count, 3, height, width, generator=torch.Generator().manual_seed(1))


def test_parameters_that_allow_nothing_return_the_batch_itself() -> None:
    images = batch()
    assert augment(images, AugmentationParameters(), 0) is images


@given(st.integers(0, 1000))
def test_a_shift_moves_whole_pixels_and_repeats_the_edge(seed: int) -> None:
    images = batch(count=1, height=5, width=4)
    moved = augment(images, AugmentationParameters(shift_pixels=2), seed)
    rows, columns = torch.arange(5), torch.arange(4)
    candidates = [
        images[:, :, (rows + down).clamp(0, 4)][..., (columns + across).clamp(0, 3)]
        for down in range(-2, 3)
        for across in range(-2, 3)
    ]
    assert min(float((moved - candidate).abs().max()) for candidate in candidates) < 1e-5


def test_a_flip_mirrors_about_half_of_the_images_and_leaves_the_others() -> None:
    images = batch(count=400)
    moved = augment(images, AugmentationParameters(horizontal_flip=True), 0)
    mirrored = (moved - images.flip(-1)).abs().amax(dim=(1, 2, 3)) < 1e-5
    kept = (moved - images).abs().amax(dim=(1, 2, 3)) < 1e-5
    assert torch.all(mirrored ^ kept)
    assert 150 < int(mirrored.sum()) < 250


def test_a_rotation_is_one_in_pixels_even_where_images_are_not_square() -> None:
    height, width = 41, 81
    y, x = torch.meshgrid(torch.arange(height) - 20.0, torch.arange(width) - 40.0, indexing="ij")
    round_spot = torch.exp(-(x**2 + y**2) / 8**2).expand(8, 1, height, width)
    long_spot = torch.exp(-(x**2 + 4 * y**2) / 8**2).expand(8, 1, height, width)
    rotation = AugmentationParameters(rotation_degrees=90)
    assert float((augment(round_spot, rotation, 0) - round_spot).abs().max()) < 0.01
    assert float((augment(long_spot, rotation, 0) - long_spot).abs().max()) > 0.3


def test_a_scale_changes_the_area_within_its_range() -> None:
    square = torch.zeros(64, 1, 60, 60)
    square[:, :, 20:40, 20:40] = 1
    area = augment(square, AugmentationParameters(scale_range=0.5), 0).sum(dim=(1, 2, 3)) / 400
    assert 0.25 * 0.98 <= float(area.min()) < 0.5
    assert 1.6 < float(area.max()) <= 2.25 * 1.02


def test_augmentation_and_normalisation_may_come_in_either_order() -> None:
    images = batch()
    before = (augment(images, EVERYTHING, 0) - 0.4) / 0.2
    after = augment((images - 0.4) / 0.2, EVERYTHING, 0)
    torch.testing.assert_close(before, after, atol=1e-4, rtol=0)


def test_the_generator_alone_decides_the_draw() -> None:
    torch.manual_seed(5)
    first = augment(batch(), EVERYTHING, 3)
    torch.manual_seed(6)
    assert torch.equal(first, augment(batch(), EVERYTHING, 3))
    assert not torch.equal(first, augment(batch(), EVERYTHING, 4))


def test_images_of_a_batch_move_apart_from_each_other() -> None:
    alike = batch(count=1).expand(5, -1, -1, -1)
    moved = augment(alike, EVERYTHING, 0)
    assert len({tuple(image.flatten().tolist()) for image in moved}) == 5


@pytest.mark.parametrize("precision", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_shape_and_precision_are_kept(precision: torch.dtype) -> None:
    images = batch().to(precision)
    moved = augment(images, EVERYTHING, 0)
    assert moved.shape == images.shape and moved.dtype == precision


def test_an_empty_batch_stays_empty() -> None:
    assert augment(batch(count=0), EVERYTHING, 0).shape == (0, 3, 7, 9)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_device_does_not_change_the_moves() -> None:
    on_cpu = augment(batch(), EVERYTHING, 0)
    on_gpu = augment(batch().cuda(), EVERYTHING, 0)
    assert on_gpu.is_cuda
    torch.testing.assert_close(on_gpu.cpu(), on_cpu, atol=1e-4, rtol=0)


@pytest.mark.parametrize("images", [torch.zeros(2, 1, 4, 4, dtype=torch.uint8), torch.zeros(1, 4, 4)])
def test_bytes_and_single_images_are_refused(images: Tensor) -> None:
    with pytest.raises(InputError, match="floating point of shape"):
        augment(images, EVERYTHING, 0)
