"""The paper's networks, a table of the appendix each, and the hash layer on top of them."""

from collections.abc import Mapping, Sequence

from deephash_pipeline.errors import InputError

from .caffenet import caffenet
from .cifar10 import CIFAR10_FULL
from .hash_layer import HashLayer, HashLayerParameters, HashNetwork, HashSoftmaxNetwork, LinearCode, SoftmaxNetwork
from .layers import Row
from .lenet import LENET
from .trunk import Trunk, initialise

NETWORKS: Mapping[str, Sequence[Row]] = {
    "lenet": LENET,
    "cifar10_full": CIFAR10_FULL,
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


__all__ = [
    "NETWORKS",
    "HashLayer",
    "HashLayerParameters",
    "HashNetwork",
    "HashSoftmaxNetwork",
    "LinearCode",
    "SoftmaxNetwork",
    "Trunk",
    "build_trunk",
    "initialise",
]
