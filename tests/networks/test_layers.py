"""Pooling and normalisation do what Caffe's layers do, which the appendix's tables presuppose."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.networks.layers import AveragePooling, Convolution, MaxPooling, ResponseNormalisation
from deephash_pipeline.networks.normalisation import LocalResponseNormalisation


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(("row", "reduce"), [(MaxPooling, torch.amax), (AveragePooling, torch.mean)])
def test_sizes_are_rounded_up_and_a_window_over_the_border_counts_what_lies_inside(row, reduce, layout):
    for side, (kernel, stride) in product((4, 5, 6, 7, 8, 13), ((2, 2), (3, 2), (3, 3))):
        images = torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(side))
        pooled = row(kernel, stride, output=()).layer((3, side, side))(images.contiguous(memory_format=layout))
        # As Caffe has it.
        size = math.ceil((side - kernel) / stride) + 1
        assert pooled.shape == (2, 3, size, size)
        for i, j in product(range(size), repeat=2):
            inside = images[:, :, stride * i : stride * i + kernel, stride * j : stride * j + kernel]
            torch.testing.assert_close(pooled[:, :, i, j], reduce(inside, dim=(2, 3)))


def test_a_filter_of_a_group_sees_that_groups_channels_only():
    layer = Convolution(6, kernel=3, stride=1, padding=1, groups=2, output=(6, 5, 5)).layer((4, 5, 5))
    images, changed = torch.randn(1, 4, 5, 5), torch.randn(1, 2, 5, 5)
    moved = layer(torch.cat([images[:, :2], changed], dim=1)) - layer(images)
    assert layer.weight.shape == (6, 2, 3, 3)
    assert torch.count_nonzero(moved[:, :3]) == 0
    assert torch.count_nonzero(moved[:, 3:]) > 0


def normalised_by_loops(images, size, alpha, within_channel):
    """Caffe's definition, number by number: the window is clipped to the image, its mean divides by all of it."""
    batch, channels, height, width = images.shape
    reach = size // 2
    result = torch.empty_like(images)
    for n in range(batch):
        for c in range(channels):
            for i in range(height):
                for j in range(width):
                    total = 0.0
                    if within_channel:
                        for y in range(max(0, i - reach), min(height, i + reach + 1)):
                            for x in range(max(0, j - reach), min(width, j + reach + 1)):
                                total += float(images[n, c, y, x]) ** 2
                        mean = total / size**2
                    else:
                        for k in range(max(0, c - reach), min(channels, c + reach + 1)):
                            total += float(images[n, k, i, j]) ** 2
                        mean = total / size
                    result[n, c, i, j] = images[n, c, i, j] * (1 + alpha * mean) ** -0.75
    return result


shapes = st.tuples(st.integers(1, 2), st.integers(1, 6), st.integers(1, 5), st.integers(1, 5))


@settings(max_examples=40, deadline=None)
@given(shapes, st.sampled_from([1, 3, 5]), st.floats(1e-5, 2.0), st.booleans(), st.booleans(), st.integers(0, 2**31))
def test_normalisation_is_the_loop_over_every_window(shape, size, alpha, within_channel, channels_last, seed):
    images = 3 * torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    layer = ResponseNormalisation(size, alpha, within_channel, output=shape[1:]).layer(shape[1:])
    normalised = layer(images.contiguous(memory_format=layout))
    torch.testing.assert_close(normalised, normalised_by_loops(images, size, alpha, within_channel))


@pytest.mark.parametrize("within_channel", [True, False])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_the_gradient_written_out_is_the_derivative(within_channel, layout):
    images = 2 * torch.randn(2, 7, 4, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    images = images.contiguous(memory_format=layout).requires_grad_()
    layer = LocalResponseNormalisation(size=3, alpha=0.7, within_channel=within_channel)
    assert torch.autograd.gradcheck(layer, (images,))


def test_half_precision_is_computed_in_single():
    images = torch.randn(2, 6, 5, 5, generator=torch.Generator().manual_seed(3)).bfloat16().requires_grad_()
    single = images.detach().float().requires_grad_()
    layer = LocalResponseNormalisation(size=3, alpha=0.5, within_channel=True)
    normalised, expected = layer(images), layer(single)
    normalised.float().sum().backward()
    expected.sum().backward()
    assert torch.equal(normalised, expected.bfloat16())
    assert torch.equal(images.grad, single.grad.bfloat16())


def test_a_window_without_a_centre_is_refused():
    with pytest.raises(ValueError, match="its size is odd, got 4"):
        LocalResponseNormalisation(size=4, alpha=1.0, within_channel=True)
