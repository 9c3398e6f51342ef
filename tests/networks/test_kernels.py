"""Compiled layers equal the plain ones bit for bit, so that it does not matter which of the two ran."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.common.devices import threads
from deephash_pipeline.networks import normalisation_kernels as kernels
from deephash_pipeline.networks.kernels import covered, pixels
from deephash_pipeline.networks.normalisation import LocalResponseNormalisation


def normalised_with_gradient(layer, responses, gradient, number_of_threads):
    responses = responses.clone().requires_grad_()
    with threads(number_of_threads):
        normalised = layer(responses)
        normalised.backward(gradient)
    return normalised, responses.grad


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(*(st.integers(1, most) for most in (3, 19, 9, 7))),
    size=st.sampled_from([1, 3, 5]),
    alpha=st.floats(1e-5, 2.0),
    scale=st.sampled_from([1e-3, 1.0, 50.0, 1e20]),
    precision=st.sampled_from([torch.float32, torch.bfloat16]),
    seed=st.integers(0, 2**31),
)
def test_normalisation_and_its_gradient_are_those_of_several_threads(shape, size, alpha, scale, precision, seed):
    generator = torch.Generator().manual_seed(seed)
    responses, gradient = (torch.randn(shape, generator=generator) for _ in range(2))
    responses = (scale * responses).to(precision).contiguous(memory_format=torch.channels_last)
    layer = LocalResponseNormalisation(size, alpha, within_channel=True)
    with threads(1):
        assert covered(responses)
    ours = normalised_with_gradient(layer, responses, gradient.to(precision), 1)
    plain = normalised_with_gradient(layer, responses, gradient.to(precision), 2)
    for mine, expected in zip(ours, plain, strict=True):
        torch.testing.assert_close(mine, expected, rtol=0, atol=0, equal_nan=True)
        assert mine.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("within_channel", [True, False])
def test_only_windows_within_a_channel_are_compiled(within_channel, monkeypatch):
    made = []
    monkeypatch.setattr(kernels, "normalise", lambda *arguments: made.append(1))
    with threads(1):
        responses = torch.ones(1, 2, 3, 4).contiguous(memory_format=torch.channels_last)
        LocalResponseNormalisation(3, 0.5, within_channel)(responses)
    assert made == [1] * within_channel


@settings(max_examples=200, deadline=None)
@given(st.floats(width=32, allow_nan=True, allow_infinity=True), st.sampled_from([-1, 0, 1]))
def test_bfloat16_is_rounded_as_pytorch_rounds(value, above_a_tie):
    bits = torch.tensor([value]).view(torch.int32)
    tie = ((bits >> 16 << 16) + 0x8000 + above_a_tie).view(torch.float32)
    # Of one pixel and no window the layer multiplies by one: what is left is the rounding.
    for number in (torch.tensor([value]).reshape(1, 1, 1, 1), tie.reshape(1, 1, 1, 1)):
        root = torch.empty_like(number)
        rounded = torch.empty_like(number, dtype=torch.bfloat16)
        kernels.normalise(pixels(number), pixels(rounded), pixels(root), (0, np.float32(0)))
        if (number * number).isfinite():
            assert torch.equal(rounded, number.to(torch.bfloat16))
        else:
            assert rounded.isnan()
