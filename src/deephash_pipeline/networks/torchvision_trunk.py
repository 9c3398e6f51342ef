"""Any classifier of `torchvision.models` as a trunk: the model without its last linear layer."""

import os
from functools import cache
from http.client import HTTPException
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Literal, Self

import safetensors
import safetensors.torch
import torch
from pydantic import BaseModel, ConfigDict, PositiveInt, model_validator
from torch import Tensor, nn

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.networks.layers import Shape
from deephash_pipeline.networks.trunk import Trunk

LARGEST_SMALL_IMAGE = 64
"""Side in pixels up to which a ResNet gets the stem for small images by itself."""

CHANNELS = 3
UNREADABLE = (OSError, EOFError, KeyError, UnpicklingError, RuntimeError, ValueError)
"""What reading a file of weights that is damaged, or no such file, ends in."""
LAST_LAYER = "`{}` does not end in one linear layer below which z could be: choose another `network`"


class TrunkParameters(BaseModel):
    """What a user may set about a network of torchvision.

    Attributes:
        pretrained: stage 1 starts from torchvision's best weights (``DEFAULT``), which are downloaded at first use,
            instead of from random ones. Random initialisation stays random.
        weights: a file of the network's state as torchvision names its parts, ``.safetensors`` or what `torch.save`
            writes; stage 1 starts from it, and nothing is downloaded.
        frozen: there is no stage 1: the trunk stays as these weights have it, and no labels are needed for it.
        small_image_stem: for ResNets, a first convolution of 3x3 pixels with stride 1 and no pooling after it, so that
            small images are not made smaller at once; it starts from random weights even where the rest is pretrained.
            ``auto`` is for images of at most 64 pixels, and not for a frozen trunk. All other networks keep their stem.
        image_size: side in pixels of the images that go in; None for that of the stored ones. Of larger stored images
            it takes crops.

    Example:
        >>> TrunkParameters(weights="resnet18.safetensors", frozen=True).learned_elsewhere
        True
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pretrained: bool = False
    weights: str | None = None
    frozen: bool = False
    small_image_stem: bool | Literal["auto"] = "auto"
    image_size: PositiveInt | None = None

    @model_validator(mode="after")
    def _what_is_frozen_was_learned(self) -> Self:
        if self.frozen and not self.learned_elsewhere:
            raise ValueError("random weights are not to be `frozen`: set `pretrained: true`, or `weights` to a file")
        if self.frozen and self.small_image_stem is True:
            raise ValueError("a stem for small images is random, and not to be `frozen`: leave out `small_image_stem`")
        if self.frozen:
            object.__setattr__(self, "small_image_stem", False)
        return self

    @property
    def learned_elsewhere(self) -> bool:
        """Whether stage 1 starts from weights that were learned on other images."""
        return self.pretrained or self.weights is not None

    def of_hasher(self) -> dict[str, Any]:
        """Give what the trunk of a hasher is built by, which has its weights."""
        return self.model_dump(mode="json", exclude={"weights", "frozen"})


class TorchvisionTrunk(Trunk):
    """z is what goes into the last linear layer of a classifier; grey images are replicated to three channels.

    Args:
        network: name of a classifier in `torchvision.models`.
        image_shape: of the stored images: channels, 1 or 3, height and width.
        parameters: see `TrunkParameters`.

    Raises:
        InputError: a classifier that does not end in one linear layer, or images that it cannot take.

    Example:
        >>> TorchvisionTrunk("resnet18", (3, 32, 32), TrunkParameters()).z_dimension
        512
    """

    def __init__(self, network: str, image_shape: Shape, parameters: TrunkParameters) -> None:
        super().__init__()
        channels, *size = image_shape
        height, width = size if parameters.image_size is None else 2 * [parameters.image_size]
        self.image_shape = (channels, height, width)
        self.network = network
        self.small_image_stem = parameters.small_image_stem
        self.weights = parameters.weights
        if channels not in (1, CHANNELS):
            raise InputError(f"`{network}` takes images of 1 or {CHANNELS} channels, got {channels}: convert them")
        try:
            self.layers, self.z_dimension, self._names = self._make(seed=0, weights=None)
            # An image goes through, so that what cannot work is refused before any work is done.
            self.layers.eval()
            with torch.no_grad():
                z = self(torch.zeros(1, *self.image_shape))
        except InputError:
            raise
        except (RuntimeError, ValueError, AssertionError) as error:
            raise InputError(
                f"`{network}` cannot take images of shape {self.image_shape} ({_one_line(error)}): "
                "set `trunk.image_size` or `image_size` of the source, or choose another `network`"
            ) from error
        self.layers.train()
        if z.shape != (1, self.z_dimension):
            raise InputError(LAST_LAYER.format(network))

    def forward(self, images: Tensor) -> Tensor:
        """Compute `z`, as `Trunk` describes."""
        self.require_shape(images)
        z: Tensor = self.layers(images.expand(-1, CHANNELS, -1, -1))
        return z

    def initialise(self, seed: int, pretrained: bool) -> None:
        """Draw weights as torchvision does, or load those that it offers, or those of the file that is given.

        Raises:
            InputError: pretrained weights that cannot be loaded.
        """
        from_file = pretrained and self.weights is not None
        try:
            model, _, _ = self._make(seed, "DEFAULT" if pretrained and not from_file else None)
        # No connection, a file that is cut short, or weights for another size of images.
        except (*UNREADABLE, HTTPException) as error:
            raise InputError(
                f"pretrained weights of `{self.network}` cannot be loaded ({_one_line(error)}): check the connection "
                "and `trunk.image_size`, give a file by `trunk.weights` (`weights` of FeatureHash), or set "
                "`trunk.pretrained` to false"
            ) from None
        self.layers.load_state_dict(model.state_dict())
        if from_file:
            self._load(Path(str(self.weights)))

    def _load(self, path: Path) -> None:
        """Load a file of torchvision's names over the weights there are, the last layer and other heads left out."""
        own = self.layers.state_dict()
        weights = stored_weights(path)
        if isinstance(getattr(self.layers, "maxpool", None), nn.Identity):
            # The stem for small images is one of its own, of random weights.
            weights = {name: tensor for name, tensor in weights.items() if name != "conv1.weight"} | {
                "conv1.weight": own["conv1.weight"]
            }
        known = own.keys() | self._names
        unknown = [name for name in weights if name not in known and not name.startswith(("aux", "AuxLogits."))]
        # Files of older versions do not count batches.
        missing = [name for name in own if name not in weights and not name.endswith("num_batches_tracked")]
        other = [name for name in own.keys() & weights.keys() if own[name].shape != weights[name].shape]
        for what, names in {"has no": missing, "has": unknown, "has another shape of": sorted(other)}.items():
            if names:
                raise InputError(
                    f"weights {path} are not those of `{self.network}`: the file {what} {names[0]}"
                    + (f" and {len(names) - 1} more" if len(names) > 1 else "")
                    + "; save `state_dict()` of this network, or set `network`"
                )
        self.layers.load_state_dict({name: weights.get(name, own[name]) for name in own})

    def _make(self, seed: int, weights: str | None) -> tuple[nn.Module, int, set[str]]:
        """Build the model, with all of its draws from `seed`, and take off the last linear layer.

        Returns:
            The model, how many inputs that layer had, and the names of what torchvision's model has.
        """
        from torchvision.models import ResNet, SqueezeNet, get_model  # noqa: PLC0415 - takes seconds; the paper's networks do without

        _, height, width = self.image_shape
        if weights is not None:
            # torchvision itself would unpickle whatever is in the file.
            os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            model: Any = get_model(self.network, weights=weights, **self._options_of_builder(weights))
            if isinstance(model, ResNet):
                small = max(height, width) <= LARGEST_SMALL_IMAGE
                if small if self.small_image_stem == "auto" else self.small_image_stem:
                    _give_small_image_stem(model)
            elif self.small_image_stem is True:
                raise InputError(f"`{self.network}` has no stem for small images: leave out `trunk.small_image_stem`")
        names = set(model.state_dict())
        if getattr(model, "aux_logits", False):
            # The pretrained Inception cannot be built without its auxiliary classifier.
            model.aux_logits, model.AuxLogits = False, None
        if isinstance(model, SqueezeNet):
            _give_linear_layer(model)
        linear = [name for name, layer in model.named_modules() if isinstance(layer, nn.Linear)]
        if not linear:
            raise InputError(LAST_LAYER.format(self.network))
        z_dimension = model.get_submodule(linear[-1]).in_features
        _replace(model, linear[-1], nn.Identity())
        _replace_stochastic_depth(model)
        return model, z_dimension, names

    def _options_of_builder(self, weights: str | None) -> dict[str, Any]:
        """Give some families the size of the images, and let others leave out their auxiliary classifiers."""
        _, height, width = self.image_shape
        match self.network.partition("_")[0]:
            case "vit":
                return {"image_size": height}
            case "maxvit":
                return {"input_size": (height, width)}
            case "googlenet" | "inception":
                # Pretrained, neither may be given; else the builders warn where `init_weights` is left to them.
                return {} if weights else {"aux_logits": False, "init_weights": True}
        return {}


def stored_weights(path: str | Path) -> dict[str, Tensor]:
    """Read the state of a network from a file, ``.safetensors`` or of `torch.save`, without unpickling any code.

    Raises:
        InputError: it is not there, cannot be read, or is no mapping of names to tensors.
    """
    path = Path(path)
    try:
        if path.suffix == ".safetensors":
            return safetensors.torch.load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"weights {path} are not there: name a file, or leave `trunk.weights` out") from None
    except (*UNREADABLE, safetensors.SafetensorError) as error:
        raise InputError(f"weights {path} cannot be read ({_one_line(error)}): save `state_dict()` alone") from error
    if isinstance(content, dict) and isinstance(content.get("state_dict"), dict):
        content = content["state_dict"]
    if not isinstance(content, dict) or not all(isinstance(tensor, Tensor) for tensor in content.values()):
        raise InputError(f"weights {path} are no names with tensors: save `state_dict()` alone")
    return content


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
    model.conv1 = nn.Conv2d(CHANNELS, model.conv1.out_channels, kernel_size=3, padding=1, bias=False)
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
            _replace(model, name, DroppedSamples(layer.p))


def _replace(model: nn.Module, name: str, layer: nn.Module) -> None:
    parent, _, own = name.rpartition(".")
    setattr(model.get_submodule(parent), own, layer)


def _one_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
