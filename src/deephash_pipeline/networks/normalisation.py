"""Local response normalisation as Caffe defines it, with an analytic gradient.

PyTorch has the one across channels only, at nine times the cost; the one within a channel, put together from its
pooling, costs twice as much. Both differ from this one in the last bits. On one thread of a CPU, where channels are
last, the one within a channel is compiled; its numbers are those of the lines here, bit for bit.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from deephash_pipeline.networks import normalisation_kernels as kernels
from deephash_pipeline.networks.kernels import covered, pixels

BETA = 0.75
"""The exponent in both networks of the paper that normalise."""


class LocalResponseNormalisation(nn.Module):
    """y = x / (1 + alpha m)^(3/4), where m is the mean of x^2 over a window around each response.

    What lies beyond the border counts as zero, and the mean divides by the size of the whole window.

    Args:
        size: responses along each side of the window, odd.
        alpha: weight of the mean.
        within_channel: the window is a square of size x size pixels in the same channel; else it is a row of `size`
            channels at the same pixel.

    Raises:
        ValueError: a window without a centre.

    Example:
        >>> across = LocalResponseNormalisation(size=5, alpha=1e-4, within_channel=False)
        >>> responses = torch.randn(2, 8, 6, 6)
        >>> torch.allclose(across(responses), nn.LocalResponseNorm(5, alpha=1e-4)(responses))
        True
    """

    def __init__(self, size: int, alpha: float, within_channel: bool) -> None:
        super().__init__()
        if size < 1 or size % 2 == 0:
            raise ValueError(f"a window has a centre only if its size is odd, got {size}")
        self.size = size
        self.alpha = alpha
        self.dimensions = (2, 3) if within_channel else (1,)

    def forward(self, responses: Tensor) -> Tensor:
        """Normalise responses of shape (batch, channels, height, width); half precision is computed in float32."""
        if torch.onnx.is_in_onnx_export():
            return self.by_pooling(responses)
        compiled = len(self.dimensions) > 1 and covered(responses)
        function = _CompiledWithinChannel if compiled else _Normalisation
        normalised: Tensor = function.apply(responses, self.size, self.alpha, self.dimensions)
        return normalised

    def by_pooling(self, responses: Tensor) -> Tensor:
        """Normalise them to nearly the same numbers by layers of PyTorch that have a form in ONNX.

        Example:
            >>> layer, responses = LocalResponseNormalisation(3, 5e-5, within_channel=True), torch.randn(2, 8, 6, 6)
            >>> torch.allclose(layer.by_pooling(responses), layer(responses))
            True
        """
        if len(self.dimensions) == 1:
            return nn.functional.local_response_norm(responses, self.size, self.alpha, BETA)
        mean = nn.functional.avg_pool2d(responses * responses, self.size, stride=1, padding=self.size // 2)
        return responses / (1 + self.alpha * mean) ** BETA

    def extra_repr(self) -> str:
        """Return the arguments, for the printed network."""
        region = "within a channel" if len(self.dimensions) > 1 else "across channels"
        return f"size={self.size}, alpha={self.alpha}, {region}"


class _Normalisation(torch.autograd.Function):
    """The gradient written out is one window sum more; autograd would compute powers twice and keep five tensors."""

    # In place wherever a tensor is ours: at these sizes memory is slower than arithmetic.
    @staticmethod
    def forward(ctx: Any, responses: Tensor, size: int, alpha: float, dimensions: tuple[int, ...]) -> Tensor:
        x = responses.to(torch.promote_types(responses.dtype, torch.float32))
        weight = alpha / size ** len(dimensions)
        inverse_root = window_sum(x * x, size, dimensions).mul_(weight).add_(1).rsqrt_()
        ctx.save_for_backward(responses, inverse_root)
        ctx.size, ctx.weight, ctx.dimensions = size, weight, dimensions
        return _to_the_three_halves(inverse_root).mul_(x).to(responses.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        responses, inverse_root = ctx.saved_tensors
        x = responses.to(inverse_root.dtype)
        direct = _to_the_three_halves(inverse_root).mul_(gradient)
        # Windows are symmetric: i lies in the window of j exactly if j lies in that of i.
        through_windows = window_sum((direct * x).mul_(inverse_root).mul_(inverse_root), ctx.size, ctx.dimensions)
        total = through_windows.mul_(x).mul_(-2 * BETA * ctx.weight).add_(direct)
        return total.to(responses.dtype), None, None, None


class _CompiledWithinChannel(torch.autograd.Function):
    """The same numbers within a channel, by `normalisation_kernels`."""

    @staticmethod
    def forward(ctx: Any, responses: Tensor, size: int, alpha: float, dimensions: tuple[int, ...]) -> Tensor:
        normalised, inverse_root = torch.empty_like(responses), torch.empty_like(responses, dtype=torch.float32)
        ctx.save_for_backward(responses, inverse_root)
        ctx.reach, ctx.weight = size // 2, alpha / size ** len(dimensions)
        window = (ctx.reach, np.float32(ctx.weight))
        kernels.normalise(pixels(responses), pixels(normalised), pixels(inverse_root), window)
        return normalised

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        responses, inverse_root = ctx.saved_tensors
        result = torch.empty_like(responses)
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        window = (ctx.reach, np.float32(-2 * BETA * ctx.weight))
        kernels.differentiate(pixels(responses), pixels(inverse_root), pixels(gradient), pixels(result), window)
        return result, None, None, None


def window_sum(values: Tensor, size: int, dimensions: Sequence[int]) -> Tensor:
    """Sum over a centred window along some dimensions, zeros beyond the border; a new tensor of the same layout.

    Shifted additions run several times as fast as PyTorch's pooling on tensors whose channels are last.
    """
    for dimension in dimensions:
        total, length = values.clone(), values.shape[dimension]
        for shift in range(1, min(size // 2, length - 1) + 1):
            total.narrow(dimension, shift, length - shift).add_(values.narrow(dimension, 0, length - shift))
            total.narrow(dimension, 0, length - shift).add_(values.narrow(dimension, shift, length - shift))
        values = total
    return values


def _to_the_three_halves(inverse_root: Tensor) -> Tensor:
    """Return s^(-3/4) from s^(-1/2), a new tensor; a reciprocal root costs a fraction of a power."""
    return inverse_root.rsqrt().mul_(inverse_root).mul_(inverse_root)
