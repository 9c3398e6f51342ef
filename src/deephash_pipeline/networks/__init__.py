"""The paper's networks, a table of the appendix each, and the hash layer on top of them."""

from collections.abc import Mapping, Sequence

from deephash_pipeline.errors import InputError

from .caffenet import caffenet
from .cifar10 import CIFAR10_FULL
from .divided_hash_layer import DividedHashLayer
from .hash_layer import HashLayer, HashLayerParameters, HashNetwork, HashSoftmaxNetwork, LinearCode, SoftmaxNetwork
from .kaggle_face import KAGGLE_FACE
from .layers import Row
from .lenet import LENET
from .side_classifier import SideClassifier
from .trunk import Trunk, initialise

NETWORKS: Mapping[str, Sequence[Row]] = {
    "lenet": LENET,
    "cifar10_full": CIFAR10_FULL,
    "kaggle_face": KAGGLE_FACE,
    "caffenet": caffenet(groups=2),
    "caffenet_ungrouped": caffenet(groups=1),
}
"""Name in Caffe's zoo, to which the paper refers -> table of the appendix."""


def build_trunk(network: str) -> Trunk:
    """Build the trunk of a network by its name in `NETWORKS`, with weights still to be drawn or loaded.

    Raises:
        InputError: unknown name.
    """
    if network not in NETWORKS:
        raise InputError(f"unknown network `{network}`: choose one of {', '.join(sorted(NETWORKS))}")
    return Trunk(NETWORKS[network])


def build_hash_layer(z_dimension: int, code_length: int, parameters: HashLayerParameters, seed: int) -> HashLayer:
    """Make a hash layer with fresh weights, divided if the parameters say so."""
    layer = DividedHashLayer if parameters.features_per_bit else HashLayer
    return layer(z_dimension, code_length, parameters, seed)


__all__ = [
    "NETWORKS",
    "DividedHashLayer",
    "HashLayer",
    "HashLayerParameters",
    "HashNetwork",
    "HashSoftmaxNetwork",
    "LinearCode",
    "SideClassifier",
    "SoftmaxNetwork",
    "Trunk",
    "build_hash_layer",
    "build_trunk",
    "initialise",
]
