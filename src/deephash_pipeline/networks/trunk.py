"""The trunk: every layer below the hash layer, images in, `z` out."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from deephash_pipeline.errors import InputError

from .layers import Row, Shape


class Trunk(nn.Module):
    """z = phi(x): the layers of one table of the appendix, followed by flattening (paper, section 2).

    Args:
        table: rows of the table, the first of which is the data.

    Raises:
        ValueError: a layer's output differs from what its row states.
    """

    def __init__(self, table: Sequence[Row]) -> None:
        super().__init__()
        self.image_shape: Shape = table[0].output
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

    def forward(self, images: Tensor) -> Tensor:
        """Compute `z`.

        Args:
            images: float32 of shape (batch, *image_shape), normalised.

        Returns:
            float32 of shape (batch, z_dimension).

        Raises:
            InputError: images of another shape than the network is made for.
        """
        if images.shape[1:] != self.image_shape:
            raise InputError(
                f"the network takes images of shape {self.image_shape}, got {tuple(images.shape[1:])}: "
                "set `image_size` of the source or choose another `network`"
            )
        z: Tensor = self.layers(images)
        return z.flatten(start_dim=1)


def initialise(module: nn.Module, seed: int) -> None:
    """Draw fresh weights for every convolution and linear layer as Caffe's LeNet does; biases zero.

    Caffe's "xavier" filler is uniform with variance 1 / fan_in. One generator, layers in order of definition. Caffe's
    `cifar10_full` and CaffeNet have Gaussian fillers instead, of deviations made for pixels of 0..255; here images are
    normalised, so all networks start alike.
    """
    generator = torch.Generator().manual_seed(seed)
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_uniform_(layer.weight, nonlinearity="linear", generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
