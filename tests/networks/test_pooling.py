"""Compiled pooling equals PyTorch's bit for bit, so that it may stand in for it wherever it is quicker."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from deephash_pipeline.common.devices import threads
from deephash_pipeline.networks import pooling

# Few values, so that many are equal: signed zeros, infinities and NaN among them.
VALUES = torch.tensor([-2.0, -0.0, 0.0, 1.0, 1.5, float("inf"), -float("inf"), float("nan")])


def pooled_with_gradient(layer, responses, seed):
    responses = responses.clone().requires_grad_()
    pooled = layer(responses)
    generator = torch.Generator().manual_seed(seed)
    gradient = torch.randn(pooled.shape, generator=generator).to(pooled.dtype)
    # Signed zeros among them.
    gradient *= torch.randint(0, 3, pooled.shape, generator=generator)
    pooled.backward(gradient)
    return pooled, responses.grad


def assert_equal_bits(ours, theirs, responses, seed):
    with threads(1):
        mine = pooled_with_gradient(ours, responses, seed)
    for one, other in zip(mine, pooled_with_gradient(theirs, responses, seed), strict=True):
        assert torch.equal(bits(one), bits(other))


SIZES = st.tuples(*(st.integers(1, most) for most in (3, 19, 5, 4)))
PRECISIONS = st.sampled_from([torch.float32, torch.bfloat16])


def drawn(size, side, precision, seed):
    batch, channels, height, width = size
    shape = (batch, channels, side * height, side * width)
    values = VALUES[torch.randint(len(VALUES), shape, generator=torch.Generator().manual_seed(seed))]
    return values.to(precision).contiguous(memory_format=torch.channels_last)


def bits(tensor):
    """As integers; a NaN is a NaN, whatever its bits, which PyTorch's layer does not keep either."""
    tensor = torch.where(tensor.isnan(), 7, tensor).contiguous()
    return tensor.view(torch.int16 if tensor.dtype == torch.bfloat16 else torch.int32)


@pytest.fixture
def calls(monkeypatch):
    """How often a compiled kernel ran."""
    made = []
    for name in ("take_maxima", "take_overlapping_maxima"):
        take = getattr(pooling.kernels, name)
        monkeypatch.setattr(pooling.kernels, name, lambda *given, take=take: (made.append(1), take(*given)))
    return made


@settings(max_examples=60, deadline=None)
@given(size=SIZES, side=st.integers(1, 3), precision=PRECISIONS, seed=st.integers(0, 2**31))
def test_maxima_and_gradients_are_pytorchs(size, side, precision, seed):
    responses = drawn(size, side, precision, seed)
    with threads(1):
        assert pooling._compiled(responses, side)
    ours, theirs = (layer(side, side, ceil_mode=True) for layer in (pooling.FastMaxPooling, nn.MaxPool2d))
    assert_equal_bits(ours, theirs, responses, seed)


@settings(max_examples=80, deadline=None)
@given(size=SIZES, precision=PRECISIONS, maximum=st.booleans(), seed=st.integers(0, 2**31))
def test_windows_that_overlap_have_pytorchs_bits_too(size, precision, maximum, seed):
    responses = drawn(size, 2, precision, seed)
    kinds = (pooling.FastMaxPooling, nn.MaxPool2d) if maximum else (pooling.FastAveragePooling, nn.AvgPool2d)
    ours, theirs = (layer(3, 2, ceil_mode=True) for layer in kinds)
    with threads(1):
        assert pooling._overlap(ours) and pooling._compiled(responses, 2)
    assert_equal_bits(ours, theirs, responses, seed)


@pytest.mark.parametrize(
    ("layer", "shape", "layout", "precision"),
    [
        pytest.param((2, 2), (2, 3, 5, 4), torch.channels_last, torch.float32, id="a window over the border"),
        pytest.param((3, 2), (2, 3, 7, 7), torch.channels_last, torch.float32, id="windows that overlap, odd sizes"),
        pytest.param((3, 1), (2, 3, 6, 6), torch.channels_last, torch.float32, id="windows that overlap by more"),
        pytest.param((3, 2), (0, 3, 4, 4), torch.channels_last, torch.float32, id="no images"),
        pytest.param((2, 2), (2, 3, 4, 4), torch.channels_last, torch.float64, id="double precision"),
        pytest.param((2, 2), (2, 3, 4, 4), torch.contiguous_format, torch.float32, id="channels first"),
    ],
)
def test_what_it_does_not_cover_is_pytorchs(layer, shape, layout, precision, calls):
    responses = torch.randn(shape, dtype=precision).contiguous(memory_format=layout)
    with threads(1):
        pooled = pooling.FastMaxPooling(*layer, ceil_mode=True)(responses)
    assert torch.equal(pooled, nn.MaxPool2d(*layer, ceil_mode=True)(responses))
    assert not calls


def test_one_thread_has_the_kernel_and_several_have_pytorchs(calls):
    responses = torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    for number, expected in ((2, 0), (1, 1)):
        with threads(number):
            pooling.FastMaxPooling(2, 2)(responses)
        assert len(calls) == expected


def test_a_graph_has_pytorchs_operator():
    responses = torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    with threads(1):
        graph = torch.export.export(pooling.FastMaxPooling(2, 2), (responses,)).graph
    assert "max_pool2d" in str(graph)
