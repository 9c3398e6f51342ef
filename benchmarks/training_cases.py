"""The trainings that the benchmark of the loop measures: networks, batches and augmentation of MNIST and CIFAR-10."""

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

CLASSES = 10
CODE_LENGTH = 48
HASHING = ExponentiatedLoss(loss_scale="unit", balance_pairs=True)
NOT_MOVED = AugmentationParameters()


@dataclass(frozen=True)
class Case:
    """One kind of training.

    Attributes:
        name: what the tables call it.
        network: by its name in `NETWORKS`.
        batch_size: images of a step.
        hashing: the hashing loss at 48 bits, else cross entropy.
        augmentation: of the images.
    """

    name: str
    network: str
    batch_size: int
    hashing: bool
    augmentation: AugmentationParameters = NOT_MOVED


CASES = (
    Case(
        "MNIST, pre-training",
        "lenet",
        128,
        False,
        AugmentationParameters(shift_pixels=2, rotation_degrees=10, scale_range=0.1),
    ),
    Case(
        "MNIST, fine-tuning",
        "lenet",
        128,
        True,
        AugmentationParameters(shift_pixels=1, rotation_degrees=6, scale_range=0.06),
    ),
    Case("MNIST, fine-tuning", "lenet", 500, True),
    Case(
        "CIFAR-10, pre-training",
        "cifar10_full",
        128,
        False,
        AugmentationParameters(shift_pixels=4, horizontal_flip=True),
    ),
    Case("CIFAR-10, fine-tuning", "cifar10_full", 128, True),
    Case("CIFAR-10, fine-tuning", "cifar10_full", 500, True),
)


def build_network(case: Case) -> nn.Module:
    """The network with fresh weights."""
    trunk = build_trunk(case.network)
    initialise(trunk, seed=1)
    if not case.hashing:
        return SoftmaxNetwork(trunk, CLASSES)
    parameters = HashLayerParameters(centring=True, scale=3.0)
    return HashNetwork(trunk, HashLayer(trunk.z_dimension, CODE_LENGTH, parameters, seed=2))
