"""The paper's networks, one for each table of its appendix, those of torchvision and timm, and the hash layer on top.

`build_trunk` makes images into z by the name of a network, `build_hash_layer` z into u, whose signs are the code;
`HashNetwork` puts one on the other.
"""

from collections.abc import Sequence

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.registry import Registry
from deephash_pipeline.networks.backbone import Backbone, TrunkParameters, usual_input
from deephash_pipeline.networks.classification_head import ClassificationHead, straight_through_sign
from deephash_pipeline.networks.hash_layer import (
    DividedHashLayer,
    HashLayer,
    HashLayerParameters,
    HashNetwork,
    HashSoftmaxNetwork,
    LinearCode,
    SoftmaxNetwork,
)
from deephash_pipeline.networks.initialisation import initialise
from deephash_pipeline.networks.layers import LayerRow, Shape
from deephash_pipeline.networks.normalisation import LocalResponseNormalisation
from deephash_pipeline.networks.small_resnet import SMALL_RESNETS, SmallResNet
from deephash_pipeline.networks.timm_models import TIMM_PREFIX, require_model
from deephash_pipeline.networks.torchvision_models import classifiers
from deephash_pipeline.networks.trunk import TableTrunk, Trunk

NETWORKS: Registry[Sequence[LayerRow]] = Registry(
    {
        "lenet": ".lenet:LENET",
        "cifar10_full": ".cifar10:CIFAR10_FULL",
        "kaggle_face": ".cifar10:KAGGLE_FACE",
        "caffenet": ".caffenet:CAFFENET",
        "caffenet_ungrouped": ".caffenet:CAFFENET_UNGROUPED",
    },
    __package__,
)
"""Name in Caffe's zoo, to which the paper refers -> table of the appendix: the first is `kaggle_face`, the second
`lenet` (MNIST), the third `cifar10_full`, the fourth `caffenet` (SUN397)."""

OWN_NETWORKS = frozenset({*NETWORKS, *SMALL_RESNETS})
"""Names of the networks that are defined here: those of `NETWORKS`, each for one size, and those for any small size."""

USUAL_IMAGE_SHAPE = (3, 224, 224)


def build_trunk(
    network: str, image_shape: Shape = USUAL_IMAGE_SHAPE, parameters: TrunkParameters | None = None
) -> Trunk:
    """Build the trunk of a network, with weights still to be drawn or loaded.

    Args:
        network: a name in `NETWORKS`, that of a classifier in `torchvision.models`, or ``timm/`` and that of a model
            of timm.
        image_shape: shape of the stored images, channels first; a table of the appendix has its own.
        parameters: options of a network of torchvision or timm.

    Raises:
        InputError: unknown name, or a network that does not fit the images or the parameters.

    Example:
        >>> trunk = build_trunk("lenet")
        >>> trunk.image_shape, trunk.z_dimension
        ((1, 28, 28), 500)
    """
    require_network(network)
    if network in NETWORKS:
        return TableTrunk(NETWORKS[network])
    if network in SMALL_RESNETS:
        return SmallResNet(network, image_shape)
    return Backbone(network, image_shape, parameters or TrunkParameters())


def require_network(network: str) -> None:
    """Raise InputError if a name is not in `NETWORKS`, not a classifier of `torchvision.models` and no model of timm.

    Example:
        >>> require_network("resnet18")
    """
    if network.startswith(TIMM_PREFIX):
        require_model(network)
    elif network not in OWN_NETWORKS and network not in classifiers():
        raise InputError(
            f"unknown network `{network}`: choose one of {', '.join(sorted(OWN_NETWORKS))}, "
            "a model of timm such as timm/tf_efficientnet_lite0, or a classifier of torchvision.models such as resnet18"
        )


def build_hash_layer(z_dimension: int, code_length: int, parameters: HashLayerParameters, seed: int) -> HashLayer:
    """Make a hash layer with fresh weights, divided if the parameters say so.

    Args:
        z_dimension: length of z.
        code_length: number of bits, K.
        parameters: form of the layer, see `HashLayerParameters`.
        seed: seed of the weights.

    Example:
        >>> import torch
        >>> build_hash_layer(500, 48, HashLayerParameters(), seed=0)(torch.zeros(2, 500)).shape
        torch.Size([2, 48])
    """
    layer = DividedHashLayer if parameters.features_per_bit else HashLayer
    return layer(z_dimension, code_length, parameters, seed)


__all__ = [
    "NETWORKS",
    "OWN_NETWORKS",
    "SMALL_RESNETS",
    "Backbone",
    "ClassificationHead",
    "DividedHashLayer",
    "HashLayer",
    "HashLayerParameters",
    "HashNetwork",
    "HashSoftmaxNetwork",
    "LinearCode",
    "LocalResponseNormalisation",
    "Shape",
    "SmallResNet",
    "SoftmaxNetwork",
    "TableTrunk",
    "Trunk",
    "TrunkParameters",
    "build_hash_layer",
    "build_trunk",
    "initialise",
    "require_network",
    "straight_through_sign",
    "usual_input",
]
