"""What encoders compute, in PyTorch and double precision, so that it can be a part of a graph."""

from functools import singledispatch
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing import (
    AGH,
    Encoder,
    FastHash,
    LinearEncoder,
    LiongSDH,
    OneOfC,
    Sign,
    SpectralHashing,
    SphericalHashing,
)
from deephash_pipeline.hashing.anchors import KernelHashFunction


@singledispatch
def outputs(encoder: Encoder, z: Tensor) -> Tensor:
    """What a code is the signs of: bit k of a row is 1 if and only if output k is at least 0.

    Args:
        encoder: with its arrays.
        z: features, float64 of shape (n, D).

    Returns:
        float64 of shape (n, code_length).

    Raises:
        InputError: an encoder that is not written down here.

    Example:
        >>> encoder = LinearEncoder.from_arrays(1, {"projection": [[1.0], [1.0]], "threshold": [0.5]})
        >>> outputs(encoder, torch.tensor([[1.0, 0.0]], dtype=torch.float64)).tolist()
        [[0.5]]
    """
    raise InputError(f"{type(encoder).__name__} cannot be exported yet: write it down in {__name__}")


@outputs.register
def _(encoder: LinearEncoder, z: Tensor) -> Tensor:
    return z @ _double(encoder.projection_) - _double(encoder.threshold_)


@outputs.register
def _(encoder: Sign, z: Tensor) -> Tensor:
    return (z - _double(encoder.threshold_))[:, : encoder.code_length]


@outputs.register
def _(encoder: SpectralHashing, z: Tensor) -> Tensor:
    travelled = z @ _double(encoder.directions_) - _double(encoder.origin_)
    return torch.cos(travelled[:, torch.from_numpy(encoder.axis_)] * _double(encoder.frequency_))


@outputs.register
def _(encoder: KernelHashFunction, z: Tensor) -> Tensor:
    kernels = torch.exp(-_double(encoder.decay_) * _squared_distances(z, _double(encoder.anchors_)))
    return kernels @ _double(encoder.projection_) - _double(encoder.threshold_)


@outputs.register
def _(encoder: AGH, z: Tensor) -> Tensor:
    near, chosen = _squared_distances(z, _double(encoder.anchors_)).topk(len(encoder.bandwidth_), largest=False)
    kernels = torch.exp(-(near - near[:, :1]) / float(encoder.bandwidth_[-1] ** 2 or 1.0))
    places = (chosen[:, :, None] == torch.arange(len(encoder.anchors_))).double()
    weights = (kernels[:, :, None] * places).sum(1) / kernels.sum(1, keepdim=True)
    functions = weights @ _double(encoder.projection_)
    seconds = functions[:, : len(encoder.positive_)]
    split = torch.where(seconds >= 0, seconds - _double(encoder.positive_), _double(encoder.negative_) - seconds)
    return torch.cat([functions, split], dim=1)[:, : encoder.code_length]


@outputs.register
def _(encoder: SphericalHashing, z: Tensor) -> Tensor:
    return _double(encoder.squared_radii_) - _squared_distances(z, _double(encoder.centres_))


@outputs.register
def _(encoder: LiongSDH, z: Tensor) -> Tensor:
    first = torch.tanh(z @ _double(encoder.weights_1_) + _double(encoder.bias_1_))
    second = torch.tanh(first @ _double(encoder.weights_2_) + _double(encoder.bias_2_))
    return second @ _double(encoder.weights_3_) + _double(encoder.bias_3_)


@outputs.register
def _(encoder: FastHash, z: Tensor) -> Tensor:
    bits, trees, nodes = encoder.feature_.shape
    feature, value = torch.from_numpy(encoder.feature_).long().flatten(), _double(encoder.value_).flatten()
    # Of every row at once, one level of all trees after the other.
    root = nodes * torch.arange(bits * trees)
    node = torch.zeros_like(z[:, :1], dtype=torch.long) * root
    for _ in range((nodes + 1).bit_length() - 2):
        looked_at = z.float().double().gather(1, feature[root + node])
        node = 2 * node + 1 + (looked_at > value[root + node])
    return value[root + node].reshape(-1, bits, trees).sum(2)


@outputs.register
def _(encoder: OneOfC, z: Tensor) -> Tensor:
    predicted = (z @ _double(encoder.weights_) + _double(encoder.bias_)).argmax(dim=1, keepdim=True)
    return (predicted == torch.arange(encoder.code_length)).double() - 0.5


def _squared_distances(z: Tensor, anchors: Tensor) -> Tensor:
    squared = (z * z).sum(1, keepdim=True) + (anchors * anchors).sum(1) - 2 * z @ anchors.T
    return squared.clamp(min=0)


def _double(array: NDArray[Any]) -> Tensor:
    return torch.from_numpy(array).double()
