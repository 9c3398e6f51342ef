"""The trunk: every layer below the hash layer, images in, `z` out."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.networks.layers import LayerRow, Shape


class Trunk(nn.Module):
    """z = phi(x): layers, followed by flattening (paper, section 2).

    Attributes:
        image_shape: shape of an image that goes in: channels, height, width.
        layers: all of them, one after the other.
        z_dimension: length of z.

    Example:
        >>> from deephash_pipeline.networks import build_trunk
        >>> trunk = build_trunk("lenet")
        >>> trunk.image_shape, trunk.image_size, trunk.z_dimension
        ((1, 28, 28), (28, 28), 500)
    """

    image_shape: Shape
    layers: nn.Module
    z_dimension: int

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width of an image."""
        _, height, width = self.image_shape
        return height, width

    def forward(self, images: Tensor) -> Tensor:
        """Compute `z`.

        Args:
            images: float32 of shape (batch, *image_shape), normalised.

        Returns:
            float32 of shape (batch, z_dimension).

        Raises:
            InputError: images of another shape than the network is made for.
        """
        self.require_shape(images)
        z: Tensor = self.layers(images)
        return z.flatten(start_dim=1)

    def require_shape(self, images: Tensor) -> None:
        """Raise InputError for images of another shape."""
        if images.shape[1:] != self.image_shape:
            raise InputError(
                f"the network takes images of shape {self.image_shape}, got {tuple(images.shape[1:])}: "
                "set `image_size` and `channels` of the source or choose another `network`"
            )


class TableTrunk(Trunk):
    """The layers of one table of the appendix.

    Args:
        table: rows of the table, the first of which is the data.

    Raises:
        ValueError: a layer's output differs from what its row states.

    Example:
        >>> from deephash_pipeline.networks.lenet import LENET
        >>> TableTrunk(LENET)(torch.zeros(2, 1, 28, 28)).shape
        torch.Size([2, 500])
    """

    layers: nn.Sequential

    def __init__(self, table: Sequence[LayerRow]) -> None:
        super().__init__()
        self.image_shape = table[0].output
        self.layers = nn.Sequential()
        example = torch.zeros(1, *self.image_shape)
        for number, row in enumerate(table, start=1):
            layer = row.layer(tuple(example.shape[1:]))
            with torch.no_grad():
                example = layer(example)
            if tuple(example.shape[1:]) != row.output:
                raise ValueError(f"layer {number} {row} gives {tuple(example.shape[1:])}")
            self.layers.append(layer)
        self.z_dimension = math.prod(example.shape[1:])
