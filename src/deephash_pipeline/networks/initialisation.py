"""Where weights start: drawn from a seed, or learned on other images."""

import torch
from torch import nn

from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.networks.backbone import Backbone
from deephash_pipeline.networks.small_resnet import SmallResNet


def initialise(module: nn.Module, seed: int, pretrained: bool = False) -> None:
    """Draw fresh weights for every convolution and linear layer as Caffe's LeNet does; biases zero.

    Caffe's "xavier" filler is uniform with variance 1 / fan_in. One generator, layers in order of definition. Caffe's
    `cifar10_full` and CaffeNet have Gaussian fillers instead, of deviations made for pixels of 0..255; here images are
    normalised, so all networks start alike. A network of torchvision or timm starts as its library has it, a small
    residual one as PyTorch has its layers.

    Args:
        module: module whose weights are replaced.
        seed: seed of all draws.
        pretrained: load weights that were learned elsewhere into a network of torchvision or timm instead.

    Raises:
        InputError: pretrained weights that cannot be loaded.

    Example:
        >>> layer = nn.Linear(4, 2)
        >>> initialise(layer, seed=0)
        >>> layer.bias.tolist()
        [0.0, 0.0]
    """
    generator = torch.Generator().manual_seed(seed)
    of_others: set[nn.Module] = set()
    for layer in module.modules():
        if isinstance(layer, Backbone | SmallResNet):
            layer.initialise(derive_seed(seed, "torchvision"), pretrained)
            of_others.update(layer.modules())
        elif isinstance(layer, nn.Conv2d | nn.Linear) and layer not in of_others:
            nn.init.kaiming_uniform_(layer.weight, nonlinearity="linear", generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
