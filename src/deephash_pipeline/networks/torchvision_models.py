"""Classifiers of `torchvision.models` without their last linear layer."""

import os
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

from torch import Tensor, nn

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.networks.layers import Shape

LARGEST_SMALL_IMAGE = 64
"""Side in pixels up to which a ResNet gets the stem for small images by itself."""

COLOUR_CHANNELS = 3
LAST_LAYER = "`{}` does not end in one linear layer below which z could be: choose another `network`"


Headless: TypeAlias = tuple[nn.Module, set[str]]
"""A classifier without its last layer, and the names of the state that it had with it."""


class UsualInput(NamedTuple):
    """What the pretrained weights of a network were made for.

    Attributes:
        size: height and width in pixels.
        statistics: ``mean`` and ``standard_deviation`` of each channel, in units of [0, 1].

    Example:
        >>> usual_input("resnet18").size
        (224, 224)
    """

    size: tuple[int, int]
    statistics: dict[str, list[float]]


def usual_input(network: str) -> UsualInput:
    """Say what torchvision's best weights of a classifier were made for, as torchvision documents it."""
    from torchvision.models import get_model_weights  # noqa: PLC0415 - takes seconds; the paper's networks do without

    preset: Any = get_model_weights(network)["DEFAULT"].transforms()
    (side,) = preset.crop_size
    return UsualInput((side, side), {"mean": list(preset.mean), "standard_deviation": list(preset.std)})


def build(network: str, image_shape: Shape, small_image_stem: bool | Literal["auto"], pretrained: bool) -> Headless:
    """Build a model, with draws from PyTorch's generator or torchvision's weights, and take off its last linear layer.

    Raises:
        InputError: it does not end in one, or has no stem for small images.
        OSError, RuntimeError, ValueError: as torchvision raises them.

    Example:
        >>> import torch
        >>> model, known = build("resnet18", (3, 32, 32), "auto", pretrained=False)
        >>> model(torch.zeros(2, 3, 32, 32)).shape, "fc.weight" in known
        (torch.Size([2, 512]), True)
    """
    from torchvision.models import ResNet, SqueezeNet, get_model  # noqa: PLC0415 - as above

    if pretrained:
        # torchvision itself would unpickle whatever is in the file.
        os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
    options = _options_of_builder(network, image_shape, pretrained)
    model: Any = get_model(network, weights="DEFAULT" if pretrained else None, **options)
    if isinstance(model, ResNet):
        small = max(image_shape[1:]) <= LARGEST_SMALL_IMAGE
        if small if small_image_stem == "auto" else small_image_stem:
            _give_small_image_stem(model)
    elif small_image_stem is True:
        raise InputError(f"`{network}` has no stem for small images: leave out `trunk.small_image_stem`")
    known = set(model.state_dict())
    if getattr(model, "aux_logits", False):
        # The pretrained Inception cannot be built without its auxiliary classifier.
        model.aux_logits, model.AuxLogits = False, None
    if isinstance(model, SqueezeNet):
        _give_linear_layer(model)
    linear = [name for name, layer in model.named_modules() if isinstance(layer, nn.Linear)]
    if not linear:
        raise InputError(LAST_LAYER.format(network))
    replace(model, linear[-1], nn.Identity())
    _replace_stochastic_depth(model)
    return model, known


def _options_of_builder(network: str, image_shape: Shape, pretrained: bool) -> dict[str, Any]:
    """Give some families the size of the images, and let others leave out their auxiliary classifiers."""
    _, height, width = image_shape
    match network.partition("_")[0]:
        case "vit":
            return {"image_size": height}
        case "maxvit":
            return {"input_size": (height, width)}
        case "googlenet" | "inception":
            # Pretrained, neither may be given; else the builders warn where `init_weights` is left to them.
            return {} if pretrained else {"aux_logits": False, "init_weights": True}
    return {}


class DroppedSamples(nn.Module):
    """Stochastic depth: in training zero for a sample by chance, else scaled up, so that the mean stays.

    It draws by a dropout layer, which training replaces by a counter-based one. Where a model uses one such layer
    for two branches of a block (Swin, MaxViT), both are dropped together.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(probability)

    def forward(self, branch: Tensor) -> Tensor:
        """Drop samples of a branch (batch, ...)."""
        kept: Tensor = self.dropout(branch.new_ones(len(branch), *(branch.ndim - 1) * [1]))
        return branch * kept


@cache
def classifiers() -> frozenset[str]:
    """Names of all classifiers in `torchvision.models`.

    Example:
        >>> "resnet18" in classifiers()
        True
    """
    import torchvision  # noqa: PLC0415 - takes seconds; the paper's networks do without

    return frozenset(torchvision.models.list_models(module=torchvision.models))


def _give_small_image_stem(model: Any) -> None:
    model.conv1 = nn.Conv2d(COLOUR_CHANNELS, model.conv1.out_channels, kernel_size=3, padding=1, bias=False)
    nn.init.kaiming_normal_(model.conv1.weight, mode="fan_out", nonlinearity="relu")
    model.maxpool = nn.Identity()


def _give_linear_layer(model: Any) -> None:
    """Pool before the classifier and not after it: z has a feature for each channel, as in the other networks."""
    dropout, convolution, _, pooling = model.classifier
    model.classifier = nn.Sequential(pooling, nn.Flatten(), dropout, nn.Linear(convolution.in_channels, 1))


def _replace_stochastic_depth(model: nn.Module) -> None:
    from torchvision.ops import StochasticDepth  # noqa: PLC0415 - as above

    for name, layer in list(model.named_modules()):
        if isinstance(layer, StochasticDepth):
            replace(model, name, DroppedSamples(layer.p))


def replace(model: nn.Module, name: str, layer: nn.Module) -> None:
    """Put a layer in the place of the one of this name.

    Example:
        >>> model = nn.Sequential(nn.ReLU())
        >>> replace(model, "0", nn.Identity())
        >>> model
        Sequential(
          (0): Identity()
        )
    """
    parent, _, own = name.rpartition(".")
    setattr(model.get_submodule(parent), own, layer)
