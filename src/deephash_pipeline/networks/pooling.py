"""Max pooling, compiled where windows share no pixel, as in LeNet: a quarter of the time of PyTorch's on one thread.

Maxima and gradients equal PyTorch's bit for bit, so it does not matter which of the two ran.
"""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from deephash_pipeline.networks import kernels


class MaxPooling(nn.MaxPool2d):
    """Maximum over a square window: `nn.MaxPool2d`, faster for disjoint windows on one thread of a CPU.

    Example:
        >>> MaxPooling(2, 2)(torch.arange(16.0).reshape(1, 1, 4, 4)).tolist()
        [[[[5.0, 7.0], [13.0, 15.0]]]]
    """

    def forward(self, responses: Tensor) -> Tensor:
        """Pool responses of shape (batch, channels, height, width)."""
        side = self.kernel_size
        pooled: Tensor
        if isinstance(side, int) and side == self.stride and _compiled(responses, side):
            pooled = _DisjointWindows.apply(responses, side)
        else:
            pooled = super().forward(responses)
        return pooled


def _compiled(responses: Tensor, side: int) -> bool:
    return kernels.covered(responses) and responses.shape[2] % side == responses.shape[3] % side == 0


class _DisjointWindows(torch.autograd.Function):
    """Keeps the place of each maximum in its window, one byte where PyTorch keeps eight."""

    @staticmethod
    def forward(ctx: Any, responses: Tensor, side: int) -> Tensor:
        batch, channels, height, width = responses.shape
        size = (batch, channels, height // side, width // side)
        pooled = torch.empty(size, dtype=responses.dtype, memory_format=torch.channels_last)
        places = torch.empty(size, dtype=torch.uint8, memory_format=torch.channels_last)
        kernels.take_maxima(_windows(responses, side), _rows(pooled), _rows(places))
        ctx.save_for_backward(places)
        ctx.side = side
        return pooled

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        batch, channels, height, width = places.shape
        size = (batch, channels, height * ctx.side, width * ctx.side)
        total = torch.empty(size, dtype=gradient.dtype, memory_format=torch.channels_last)
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        kernels.put_at_maxima(_rows(gradient), _rows(places), _windows(total, ctx.side))
        return total, None


def _rows(pooled: Tensor) -> NDArray[Any]:
    """View a tensor in `channels_last` as (batch * height, width * channels)."""
    array = kernels.pixels(pooled)
    return array.reshape(array.shape[0] * array.shape[1], -1)


def _windows(responses: Tensor, side: int) -> NDArray[Any]:
    """View it as (batch * height / side, side, width / side, side, channels)."""
    _, channels, _, width = responses.shape
    return kernels.pixels(responses).reshape(-1, side, width // side, side, channels)
