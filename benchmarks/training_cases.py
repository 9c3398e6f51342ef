"""The trainings that benchmarks measure: networks, batches and augmentation of MNIST and CIFAR-10."""

from typing import NamedTuple

from torch import nn

from deephash_pipeline.images.augmentation import AugmentationParameters as Moved
from deephash_pipeline.losses import ExponentiatedLoss
from deephash_pipeline.networks import (
    HashLayer,
    HashLayerParameters,
    HashNetwork,
    SoftmaxNetwork,
    build_trunk,
    initialise,
)
from deephash_pipeline.training import CrossEntropy

CLASSES, CODE_LENGTH = 10, 48


class Case(NamedTuple):
    """One kind of training: what tables call it, the trunk, and whether the hashing loss is used or cross entropy."""

    name: str
    network: str
    batch_size: int
    hashing: bool
    augmentation: Moved

    def build(self) -> tuple[nn.Module, nn.Module]:
        """The network with fresh weights, and its objective."""
        if self.hashing:
            return hash_network(self.network, CODE_LENGTH), hashing_loss()
        trunk = build_trunk(self.network)
        initialise(trunk, seed=1)
        return SoftmaxNetwork(trunk, CLASSES), CrossEntropy()


def hash_network(network: str, code_length: int) -> HashNetwork:
    """Trunk and hash layer with fresh weights, the statistics of the whole batch in the hash layer."""
    trunk, parameters = build_trunk(network), HashLayerParameters(centring=True, scale=3.0)
    initialise(trunk, seed=1)
    return HashNetwork(trunk, HashLayer(trunk.z_dimension, code_length, parameters, seed=2))


def hashing_loss() -> nn.Module:
    """The loss with the options of the benchmarks' configuration."""
    return ExponentiatedLoss(loss_scale="unit", balance_pairs=True)


CASES = (
    Case("MNIST, pre-training", "lenet", 128, False, Moved(shift_pixels=2, rotation_degrees=10, scale_range=0.1)),
    Case("MNIST, fine-tuning", "lenet", 128, True, Moved(shift_pixels=1, rotation_degrees=6, scale_range=0.06)),
    Case("MNIST, fine-tuning", "lenet", 500, True, Moved()),
    Case("CIFAR-10, pre-training", "cifar10_full", 128, False, Moved(shift_pixels=4, horizontal_flip=True)),
    Case("CIFAR-10, fine-tuning", "cifar10_full", 128, True, Moved()),
    Case("CIFAR-10, fine-tuning", "cifar10_full", 500, True, Moved()),
)
