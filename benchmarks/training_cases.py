"""The trainings that benchmarks measure: networks, batches and augmentation of MNIST and CIFAR-10."""

from dataclasses import dataclass

from torch import nn

from deephash_pipeline.images.augmentation import AugmentationParameters
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
NOT_MOVED = AugmentationParameters()


@dataclass(frozen=True)
class Case:
    """One kind of training: what tables call it, the trunk, and whether the hashing loss is used or cross entropy."""

    name: str
    network: str
    batch_size: int
    hashing: bool
    augmentation: AugmentationParameters = NOT_MOVED

    def build(self) -> tuple[nn.Module, nn.Module]:
        """The network with fresh weights, and its objective."""
        if self.hashing:
            return hash_network(self.network, CODE_LENGTH), hashing_loss()
        trunk = build_trunk(self.network)
        initialise(trunk, seed=1)
        return SoftmaxNetwork(trunk, CLASSES), CrossEntropy()


def hash_network(network: str, code_length: int) -> HashNetwork:
    """Trunk and hash layer with fresh weights, the statistics of the whole batch in the hash layer."""
    trunk = build_trunk(network)
    initialise(trunk, seed=1)
    return HashNetwork(
        trunk, HashLayer(trunk.z_dimension, code_length, HashLayerParameters(centring=True, scale=3.0), seed=2)
    )


def hashing_loss() -> nn.Module:
    """The loss with the options of the benchmarks' configuration."""
    return ExponentiatedLoss(loss_scale="unit", balance_pairs=True)


MNIST, CIFAR10 = ("MNIST", "lenet"), ("CIFAR-10", "cifar10_full")
CASES = tuple(
    Case(f"{benchmark}, {'fine-tuning' if hashing else 'pre-training'}", network, batch_size, hashing, augmentation)
    for (benchmark, network), batch_size, hashing, augmentation in (
        (MNIST, 128, False, AugmentationParameters(shift_pixels=2, rotation_degrees=10, scale_range=0.1)),
        (MNIST, 128, True, AugmentationParameters(shift_pixels=1, rotation_degrees=6, scale_range=0.06)),
        (MNIST, 500, True, NOT_MOVED),
        (CIFAR10, 128, False, AugmentationParameters(shift_pixels=4, horizontal_flip=True)),
        (CIFAR10, 128, True, NOT_MOVED),
        (CIFAR10, 500, True, NOT_MOVED),
    )
)
