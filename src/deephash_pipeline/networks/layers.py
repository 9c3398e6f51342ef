"""The rows of the appendix's tables: a layer type, its filter and stride, and the size of its output.

A network is a tuple of rows that reads like the table in the paper. Each row states the output that the paper prints,
and building the network fails if PyTorch's layer gives another.

Example:
    >>> import torch
    >>> row = Convolution(20, kernel=5, stride=1, output=(20, 24, 24))
    >>> row.layer((1, 28, 28))(torch.zeros(1, 1, 28, 28)).shape
    torch.Size([1, 20, 24, 24])
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import nn

from deephash_pipeline.networks import normalisation, pooling

Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class LayerRow(ABC):
    """A row of a table.

    Attributes:
        output: size of the output that the paper states, without the batch, channels first.
    """

    output: Shape

    @abstractmethod
    def layer(self, input_shape: Shape) -> nn.Module:
        """Make the layer for inputs of `input_shape`."""


class Data(LayerRow):
    """The images that go in.

    Example:
        >>> Data(output=(1, 28, 28)).layer(()).__class__.__name__
        'Identity'
    """

    def layer(self, input_shape: Shape) -> nn.Module:
        """Pass the images through."""
        return nn.Identity()


@dataclass(frozen=True)
class Convolution(LayerRow):
    """`filters` square filters of side `kernel`; of `groups`, each sees its share of the input channels only.

    Example:
        >>> Convolution(filters=20, kernel=5, stride=1, output=(20, 24, 24)).layer((1, 28, 28))
        Conv2d(1, 20, kernel_size=(5, 5), stride=(1, 1))
    """

    filters: int
    kernel: int
    stride: int
    padding: int = 0
    groups: int = 1

    def layer(self, input_shape: Shape) -> nn.Module:
        """Make a convolution with bias."""
        return nn.Conv2d(input_shape[0], self.filters, self.kernel, self.stride, self.padding, groups=self.groups)


@dataclass(frozen=True)
class MaxPooling(LayerRow):
    """Maximum over a square window; a window may hang over the border, as in Caffe (ceil mode).

    Example:
        >>> MaxPooling(kernel=3, stride=2, output=(32, 16, 16)).layer((32, 32, 32)).ceil_mode
        True
    """

    kernel: int
    stride: int

    def layer(self, input_shape: Shape) -> nn.Module:
        """Make a pooling layer."""
        return pooling.FastMaxPooling(self.kernel, self.stride, ceil_mode=True)


@dataclass(frozen=True)
class AveragePooling(LayerRow):
    """Mean over a square window; of a window that hangs over the border, over what lies inside, as in Caffe."""

    kernel: int
    stride: int

    def layer(self, input_shape: Shape) -> nn.Module:
        """Make a pooling layer."""
        return pooling.FastAveragePooling(self.kernel, self.stride, ceil_mode=True)


@dataclass(frozen=True)
class ResponseNormalisation(LayerRow):
    """Division by a power of the mean square of the neighbouring responses, see `normalisation`."""

    size: int
    alpha: float
    within_channel: bool

    def layer(self, input_shape: Shape) -> nn.Module:
        """Make a normalisation layer."""
        return normalisation.LocalResponseNormalisation(self.size, self.alpha, self.within_channel)


@dataclass(frozen=True)
class InnerProduct(LayerRow):
    """A fully connected layer on the flattened input.

    Example:
        >>> InnerProduct(units=500, output=(500,)).layer((50, 4, 4))[1]
        Linear(in_features=800, out_features=500, bias=True)
    """

    units: int

    def layer(self, input_shape: Shape) -> nn.Module:
        """Make a flattening linear layer with bias."""
        return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input_shape), self.units))


class ReLU(LayerRow):
    """max(0, x)."""

    def layer(self, input_shape: Shape) -> nn.Module:
        """Make a rectifier."""
        return nn.ReLU()
