"""The paper's networks, a table of the appendix each, and the hash layer on top of them."""

from collections.abc import Mapping, Sequence

from deephash_pipeline.errors import InputError

from .hash_layer import HashLayer, HashLayerParameters, HashNetwork, HashSoftmaxNetwork, LinearCode, SoftmaxNetwork
from .layers import Row
from .lenet import LENET
from .trunk import Trunk, initialise

NETWORKS: Mapping[str, Sequence[Row]] = {"lenet": LENET}


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
