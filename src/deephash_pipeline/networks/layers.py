"""The rows of the appendix's tables: a layer type, its filter and stride, and the size of its output.

A network is a tuple of rows that reads like the table in the paper. Each row states the output that the paper prints,
and building the network fails if PyTorch's layer gives another.

Example:
    >>> import torch
    >>> row = Convolution(20, kernel=5, stride=1, output=(20, 24, 24))
    >>> row.layer((1, 28, 28))(torch.zeros(1, 1, 28, 28)).shape
    torch.Size([1, 20, 24, 24])
"""

from dataclasses import dataclass
from typing import Protocol

from torch import nn

from deephash_pipeline.networks import normalisation, pooling

Shape = tuple[int, ...]


class Row(Protocol):
    """A row of a table: knows the output size the paper states and the layer that makes it."""

    @property
    def output(self) -> Shape:
        """Output size without the batch, channels first."""

    def layer(self, input_shape: Shape) -> nn.Module:
        """Make the layer for inputs of `input_shape`."""


@dataclass(frozen=True)
class Data:
    """The images that go in.

    Example:
        >>> Data(output=(1, 28, 28)).layer(()).__class__.__name__
        'Identity'
    """

    output: Shape

    def layer(self, input_shape: Shape) -> nn.Module:
        """Pass the images through."""
        return nn.Identity()


@dataclass(frozen=True)
class Convolution:
    """`filters` square filters of side `kernel`; of `groups`, each sees its share of the input channels only.

    Example:
        >>> Convolution(filters=20, kernel=5, stride=1, output=(20, 24, 24)).layer((1, 28, 28))
        Conv2d(1, 20, kernel_size=(5, 5), stride=(1, 1))
    """

    filters: int
    kernel: int
    stride: int
    output: Shape
    padding: int = 0
    groups: int = 1

    def layer(self, input_shape: Shape) -> nn.Module:
        """Make a convolution with bias."""
        return nn.Conv2d(input_shape[0], self.filters, self.kernel, self.stride, self.padding, groups=self.groups)


@dataclass(frozen=True)
class MaxPooling:
    """Maximum over a square window; a window may hang over the border, as in Caffe (ceil mode).

    Example:
        >>> MaxPooling(kernel=3, stride=2, output=(32, 16, 16)).layer((32, 32, 32)).ceil_mode
        True
    """

    kernel: int
    stride: int
    output: Shape

    def layer(self, input_shape: Shape) -> nn.Module:
        """Make a pooling layer."""
        return pooling.MaxPooling(self.kernel, self.stride, ceil_mode=True)


@dataclass(frozen=True)
class AveragePooling:
    """Mean over a square window; of a window that hangs over the border, over what lies inside, as in Caffe."""

    kernel: int
    stride: int
    output: Shape

    def layer(self, input_shape: Shape) -> nn.Module:
        """Make a pooling layer."""
        return pooling.AveragePooling(self.kernel, self.stride, ceil_mode=True)


@dataclass(frozen=True)
class LocalResponseNormalisation:
    """Division by a power of the mean square of the neighbouring responses, see `normalisation`."""

    size: int
    alpha: float
    within_channel: bool
    output: Shape

    def layer(self, input_shape: Shape) -> nn.Module:
        """Make a normalisation layer."""
        return normalisation.LocalResponseNormalisation(self.size, self.alpha, self.within_channel)


@dataclass(frozen=True)
class InnerProduct:
    """A fully connected layer on the flattened input.

    Example:
        >>> InnerProduct(units=500, output=(500,)).layer((50, 4, 4))[1]
        Linear(in_features=800, out_features=500, bias=True)
    """

    units: int
    output: Shape

    def layer(self, input_shape: Shape) -> nn.Module:
        """Make a flattening linear layer with bias."""
        size = 1
        for side in input_shape:
            size *= side
        return nn.Sequential(nn.Flatten(), nn.Linear(size, self.units))


@dataclass(frozen=True)
class ReLU:
    """max(0, x)."""

    output: Shape

    def layer(self, input_shape: Shape) -> nn.Module:
        """Make a rectifier."""
        return nn.ReLU()
