"""A small residual network with batch normalisation, for images of any small size, that a processor trains in minutes.

The paper's networks are of 2012 and need tens of thousands of images and a rate found for them. Batch normalisation
(Ioffe and Szegedy 2015, arXiv:1502.03167) and residual connections (He et al. 2015, arXiv:1512.03385) let a network
learn from some hundred images, at nearly any rate. The widths follow the fast networks for CIFAR-10 of Page (2018, "How
to train your ResNet") and Jordan (2024, arXiv:2404.00498): a convolution and a pooling at each of three scales.
"""

import torch
from torch import Tensor, nn

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.networks.layers import Shape
from deephash_pipeline.networks.trunk import Trunk

SMALL_RESNETS = {"small_resnet": 16, "medium_resnet": 32}
"""Name -> channels after the first convolution; each scale has twice those of the one before."""
RESOLUTIONS = 3
SMALLEST_SIDE = 16
"""Pixels; three poolings leave two of them."""
FULL_RESOLUTION_SIDE = 64
"""Pixels of a side up to which the first convolution looks at every pixel; beyond, at every other."""


class SmallResNet(Trunk):
    """Three scales of convolution, pooling and a residual block; z is the mean of each channel over the image.

    Args:
        network: a name in `SMALL_RESNETS`.
        image_shape: shape of the images: 1 or 3 channels, height and width of at least 16 pixels.

    Raises:
        InputError: images that it cannot take.

    Example:
        >>> trunk = SmallResNet("medium_resnet", (3, 48, 40))
        >>> trunk(torch.zeros(2, 3, 48, 40)).shape, trunk.z_dimension
        (torch.Size([2, 256]), 256)
    """

    def __init__(self, network: str, image_shape: Shape) -> None:
        super().__init__()
        channels, height, width = image_shape
        if channels not in (1, 3) or min(height, width) < SMALLEST_SIDE:
            raise InputError(
                f"`{network}` cannot take images of shape {image_shape}: it takes 1 or 3 channels and sides of "
                f"{SMALLEST_SIDE} pixels at least; set `image_size` of the source"
            )
        self.image_shape = image_shape
        stride = 1 if max(height, width) <= FULL_RESOLUTION_SIDE else 2
        filters = SMALL_RESNETS[network]
        layers: list[nn.Module] = [_normalised_convolution(channels, filters, stride)]
        for _ in range(RESOLUTIONS):
            layers += [_normalised_convolution(filters, 2 * filters, pooling=2), Residual(2 * filters)]
            filters *= 2
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1))
        self.z_dimension = filters

    def initialise(self, seed: int, pretrained: bool) -> None:
        """Draw weights as PyTorch does for its layers; none that were learned elsewhere are there.

        Raises:
            InputError: pretrained weights are asked for.
        """
        if pretrained:
            raise InputError("a small residual network has no pretrained weights: leave `trunk.pretrained` out")
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            for layer in self.modules():
                if isinstance(layer, nn.Conv2d | nn.BatchNorm2d):
                    layer.reset_parameters()


class Residual(nn.Module):
    """x + f(x), f of two convolutions.

    Args:
        width: channels of x.

    Example:
        >>> Residual(8)(torch.zeros(2, 8, 4, 4)).shape
        torch.Size([2, 8, 4, 4])
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(_normalised_convolution(width, width), _normalised_convolution(width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Add the branch to its input, (batch, width, height, width of the image)."""
        branch: Tensor = self.branch(x)
        return x + branch


def _normalised_convolution(channels: int, filters: int, stride: int = 1, pooling: int = 1) -> nn.Module:
    """Pool before the normalisation: the maximum commutes with it, and three quarters of its work are saved."""
    return nn.Sequential(
        nn.Conv2d(channels, filters, kernel_size=3, stride=stride, padding=1, bias=False),
        *([nn.MaxPool2d(pooling)] if pooling > 1 else []),
        nn.BatchNorm2d(filters),
        nn.ReLU(inplace=True),
    )
