"""Any classifier of torchvision, or model of timm, as a trunk: the model without its last linear layer."""

from http.client import HTTPException
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Literal, Self

import safetensors
import safetensors.torch
import torch
from pydantic import PositiveInt, model_validator
from torch import Tensor, nn

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.parameters import Parameters
from deephash_pipeline.networks import timm_models, torchvision_models
from deephash_pipeline.networks.layers import Shape
from deephash_pipeline.networks.torchvision_models import COLOUR_CHANNELS, LAST_LAYER, Headless, UsualInput
from deephash_pipeline.networks.trunk import Trunk

WRAPPERS = ("module.", "model.", "_orig_mod.")
"""What names begin with in the state of DataParallel, of a trainer's module, and of a compiled one."""
UNREADABLE = (OSError, EOFError, KeyError, UnpicklingError, RuntimeError, ValueError)
"""What reading a file of weights that is damaged, or no such file, ends in."""


class TrunkParameters(Parameters):
    """What a user may set about a network of torchvision or timm.

    Attributes:
        pretrained: True to start stage 1 from the library's best weights (torchvision's ``DEFAULT``), instead of from
            random ones: those of an installed package (extra ``photos``), else downloaded at first use. Random
            initialisation stays random.
        weights: a file of the network's state as its library names its parts, ``.safetensors`` or what `torch.save`
            writes; stage 1 starts from it, and nothing is downloaded.
        frozen: True to leave out stage 1: the trunk stays as these weights have it, and no labels are needed for it.
        small_image_stem: True for a ResNet with a first convolution of 3x3 pixels with stride 1 and no pooling after
            it, so that small images are not made smaller at once; it starts from random weights even where the rest is
            pretrained. ``auto`` is for images of at most 64 pixels, and not for a frozen trunk. All other networks keep
            their stem.
        unit_length: True to divide z by its length, so that its Euclidean distances are those of angles.
        image_size: side in pixels of the images that go in; None for that of the stored ones. Of larger stored images
            it takes crops.

    Example:
        >>> TrunkParameters(weights="resnet18.safetensors", frozen=True).learned_elsewhere
        True
    """

    pretrained: bool = False
    weights: str | None = None
    frozen: bool = False
    small_image_stem: bool | Literal["auto"] = "auto"
    unit_length: bool = False
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
        # Without what it does not ask for, so that hashers and trainings of earlier versions are the same as ever.
        optional = set() if self.unit_length else {"unit_length"}
        return self.model_dump(mode="json", exclude={"weights", "frozen", *optional})


class Backbone(Trunk):
    """z is what goes into the last linear layer of a classifier; grey images are replicated to three channels.

    Args:
        network: name of a classifier in `torchvision.models`, or ``timm/`` and that of a model of timm.
        image_shape: shape of the stored images: channels, 1 or 3, height and width.
        parameters: options, see `TrunkParameters`.

    Raises:
        InputError: a classifier that does not end in one linear layer, or images that it cannot take.

    Example:
        >>> Backbone("resnet18", (3, 32, 32), TrunkParameters()).z_dimension
        512
    """

    def __init__(self, network: str, image_shape: Shape, parameters: TrunkParameters) -> None:
        super().__init__()
        channels, *size = image_shape
        height, width = size if parameters.image_size is None else 2 * [parameters.image_size]
        self.image_shape = (channels, height, width)
        self.network = network
        self.settings = parameters
        if channels not in (1, COLOUR_CHANNELS):
            raise InputError(
                f"`{network}` takes images of 1 or {COLOUR_CHANNELS} channels, got {channels}: convert them"
            )
        try:
            self.layers, self._known = self._build(seed=0, pretrained=False)
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
        if z.ndim != 2:
            raise InputError(LAST_LAYER.format(network))
        self.z_dimension = z.shape[1]

    def forward(self, images: Tensor) -> Tensor:
        """Compute `z`, as `Trunk` describes."""
        self.require_shape(images)
        z: Tensor = self.layers(images.expand(-1, COLOUR_CHANNELS, -1, -1))
        return nn.functional.normalize(z) if self.settings.unit_length else z

    def initialise(self, seed: int, pretrained: bool) -> None:
        """Draw weights as the library does, or load those that it offers, or those of the file that is given.

        Raises:
            InputError: pretrained weights that cannot be loaded.
        """
        from_file = pretrained and self.settings.weights is not None
        try:
            model, _ = self._build(seed, pretrained and not from_file)
        # No connection, a file that is cut short, or weights for another size of images.
        except (*UNREADABLE, HTTPException) as error:
            raise InputError(
                f"pretrained weights of `{self.network}` cannot be loaded ({_one_line(error)}): check the connection "
                "and `trunk.image_size`, give a file by `trunk.weights` (`weights` of FeatureHash), or set "
                "`trunk.pretrained` to false"
            ) from None
        self.layers.load_state_dict(model.state_dict())
        if from_file:
            self._load(Path(str(self.settings.weights)))

    def _load(self, path: Path) -> None:
        """Load a file of the library's names over the weights there are, the last layer and other heads left out."""
        own = self.layers.state_dict()
        weights = stored_weights(path)
        if isinstance(getattr(self.layers, "maxpool", None), nn.Identity):
            # The stem for small images is one of its own, of random weights.
            weights = {name: tensor for name, tensor in weights.items() if name != "conv1.weight"} | {
                "conv1.weight": own["conv1.weight"]
            }
        known = own.keys() | self._known
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

    def _build(self, seed: int, pretrained: bool) -> Headless:
        """Build the model, with all of its draws from `seed`."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            if self.network.startswith(timm_models.TIMM_PREFIX):
                return timm_models.build(self.network, self.image_shape, pretrained)
            stem = self.settings.small_image_stem
            return torchvision_models.build(self.network, self.image_shape, stem, pretrained)


def usual_input(network: str) -> UsualInput:
    """Say what the pretrained weights of a network were made for: size and normalisation.

    Args:
        network: a classifier of torchvision, or ``timm/`` and a model of timm.

    Example:
        >>> usual_input("resnet18").size
        (224, 224)
    """
    if network.startswith(timm_models.TIMM_PREFIX):
        return timm_models.usual_input(network)
    return torchvision_models.usual_input(network)


def stored_weights(path: str | Path) -> dict[str, Tensor]:
    """Read the state of a network from a file, ``.safetensors`` or of `torch.save`, without unpickling any code.

    Raises:
        InputError: it is not there, cannot be read, or is no mapping of names to tensors.
    """
    path = Path(path)
    try:
        if path.suffix == ".safetensors":
            return unwrapped(safetensors.torch.load_file(path))
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"weights {path} are not there: name a file, or leave `trunk.weights` out") from None
    except (*UNREADABLE, safetensors.SafetensorError) as error:
        raise InputError(f"weights {path} cannot be read ({_one_line(error)}): save `state_dict()` alone") from error
    if isinstance(content, dict) and isinstance(content.get("state_dict"), dict):
        content = content["state_dict"]
    if not isinstance(content, dict) or not all(isinstance(tensor, Tensor) for tensor in content.values()):
        raise InputError(f"weights {path} are no names with tensors: save `state_dict()` alone")
    return unwrapped(content)


def unwrapped(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The state of a network itself, from that of what it was wrapped in: for several GPUs, compiled, or in a trainer.

    Example:
        >>> list(unwrapped({"_orig_mod.module.conv.weight": torch.zeros(1)}))
        ['conv.weight']
    """
    for prefix in WRAPPERS:
        if weights and all(name.startswith(prefix) for name in weights):
            return unwrapped({name.removeprefix(prefix): tensor for name, tensor in weights.items()})
    return weights


def _one_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
