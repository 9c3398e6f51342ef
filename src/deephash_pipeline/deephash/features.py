"""Features of images by a network, computed by PyTorch or, on CPUs twice as fast, by ONNX Runtime."""

import copy
import warnings
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from deephash_pipeline.common.devices import resolve_device
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.own_settings import own_settings
from deephash_pipeline.hashers.base import HasherDescription, Runtime
from deephash_pipeline.hashers.onnx_hasher import FEATURES, IMAGES, session_of
from deephash_pipeline.images.augmentation import centre_crop
from deephash_pipeline.images.batches import Images, SkippedImage, image_batches
from deephash_pipeline.images.decoding.image_files import Channels, checked_size
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.networks import Trunk, TrunkParameters, build_trunk, initialise, usual_input
from deephash_pipeline.training import outputs_in_blocks

PHOTOGRAPHS = "timm/tf_efficientnet_lite0"
"""The network for photographs: its weights come with the extra ``photos``."""
DECODED_FOR_FEATURES = 64
IMAGES_AT_A_TIME = 4
"""More leave the caches of a processor."""


class ExtractedFeatures(NamedTuple):
    """Features of the images of a batch that could be read.

    Attributes:
        features: float32 of shape (n, dimension).
        rows: int64 of shape (n,), of each image in the input.
        skipped: images that could not be read, and why.

    Example:
        >>> ExtractedFeatures(np.zeros((1, 4), np.float32), np.array([0]), []).features.shape
        (1, 4)
    """

    features: NDArray[np.float32]
    rows: NDArray[np.int64]
    skipped: list[SkippedImage]


class FeatureExtractor:
    """A network without its last layer, and what its input is.

    Both runtimes give the same features but for the rounding of single precision.

    Args:
        trunk: the network, with its weights.
        statistics: ``mean`` and ``standard_deviation`` of each channel, in units of [0, 1].
        device: PyTorch device to compute on.
        runtime: runtime that computes.

    Attributes:
        image_shape: shape to which images are resized: channels, height, width.

    Example:
        >>> from deephash_pipeline import ImageHasher
        >>> hasher = ImageHasher.pretrained("digits-48")
        >>> extractor = FeatureExtractor(hasher.trunk, hasher.description.statistics, torch.device("cpu"), "onnx")
        >>> extractor.features(np.zeros((2, 8, 8), np.uint8)).shape
        (2, 500)
    """

    image_shape: tuple[Channels, int, int]

    def __init__(
        self, trunk: Trunk, statistics: Mapping[str, list[float]], device: torch.device, runtime: Runtime = "torch"
    ) -> None:
        self.trunk, self.statistics, self.device, self.runtime = trunk, statistics, device, runtime
        channels, height, width = trunk.image_shape
        self.image_shape = (1 if channels == 1 else 3, height, width)
        self._session: Any = None

    @classmethod
    @own_settings()
    def pretrained(
        cls,
        network: str = PHOTOGRAPHS,
        *,
        weights: str | Path | None = None,
        image_size: tuple[int, int] | None = None,
        unit_length: bool = False,
        device: str = "auto",
        runtime: Runtime | Literal["auto"] = "auto",
    ) -> Self:
        """Make one of weights that were learned on other images.

        Args:
            network: a classifier of torchvision, or a model of timm.
            weights: a file of its state; None for those of an installed package, or its library's.
            image_size: height and width to which images are resized; None for those that the weights were made for.
            unit_length: divide every feature vector by its length.
            device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
            runtime: ``torch``, ``onnx``, or ``auto`` for ONNX Runtime where it is installed and there is no GPU.

        Raises:
            InputError: the network is unknown or its weights cannot be had.
        """
        file = None if weights is None else str(weights)
        parameters = TrunkParameters(pretrained=True, frozen=True, weights=file, unit_length=unit_length)
        size, statistics = usual_input(network)
        height, width = size if image_size is None else checked_size(image_size)
        trunk = build_trunk(network, (3, height, width), parameters)
        initialise(trunk, seed=0, pretrained=True)
        chosen = resolve_device(device)
        made = cls(trunk.eval(), statistics, chosen, usual_runtime(chosen) if runtime == "auto" else runtime)
        return made.prepared(required=runtime == "onnx")

    @classmethod
    def of(cls, description: HasherDescription, device: str = "auto") -> Self:
        """Make that of a hasher whose network has the weights of a package."""
        _, height, width = description.image_shape
        unit_length = bool(description.trunk.get("unit_length"))
        return cls.pretrained(description.network, image_size=(height, width), unit_length=unit_length, device=device)

    @own_settings()
    def prepared(self, required: bool = False) -> Self:
        """Make ONNX Runtime's form of the network now. Where there is none PyTorch computes, unless it is `required`.

        Raises:
            InputError: it is required, and the network has none.
        """
        if self.runtime == "onnx":
            try:
                self._session = self._traced(self.image_shape)
            except InputError:
                if required:
                    raise
                self.runtime = "torch"
        return self

    def is_same(self, other: "FeatureExtractor") -> bool:
        """Tell whether another gives the same features, but for their length and for rounding."""
        mine, theirs = self.trunk.state_dict(), other.trunk.state_dict()
        if self.image_shape != other.image_shape or self.statistics != other.statistics or mine.keys() != theirs.keys():
            return False
        return all(torch.equal(weights.cpu(), theirs[name].cpu()) for name, weights in mine.items())

    @property
    def dimension(self) -> int:
        """Length of a feature vector."""
        return self.trunk.z_dimension

    def features(self, images: Images) -> NDArray[np.float32]:
        """Compute features of images.

        Args:
            images: paths, contents of files, images of Pillow, or arrays; see `image_batches`.

        Returns:
            float32 of shape (n, dimension).

        Raises:
            InputError: an image cannot be read, by name.
        """
        blocks = [batch.features for batch in self.batches(images, "raise")]
        return np.concatenate([np.empty((0, self.dimension), np.float32), *blocks])

    def batches(self, images: Images, errors: Literal["raise", "skip"] = "skip") -> Iterator[ExtractedFeatures]:
        """Yield features batch by batch, for more images than memory has room for the features of."""
        for batch in image_batches(images, self.image_shape, DECODED_FOR_FEATURES, errors):
            yield ExtractedFeatures(self(batch.pixels), batch.rows, batch.skipped)

    @own_settings()
    def __call__(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Compute features of decoded images, uint8 (n, *image_shape), as float32 (n, dimension); n may be 0."""
        if not len(pixels):
            return np.empty((0, self.dimension), np.float32)
        if self.runtime == "torch":
            inputs = ImageInputs(pixels, self.statistics, self.device, size=self.trunk.image_size)
            return outputs_in_blocks(self.trunk.to(self.device), inputs)
        pixels = centre_crop(pixels, self.trunk.image_size)
        if self._session is None:
            self._session = self._traced(pixels.shape[1:])
        starts = range(0, len(pixels), IMAGES_AT_A_TIME)
        blocks = [np.ascontiguousarray(pixels[start : start + IMAGES_AT_A_TIME]) for start in starts]
        return np.concatenate([self._session.run([FEATURES], {IMAGES: block})[0] for block in blocks])

    def _traced(self, image_shape: tuple[int, ...]) -> Any:
        model = BytesIO()
        trace(FeatureGraph(self.trunk, self.statistics), image_shape, model, FEATURES)
        return session_of(model.getvalue(), torch.get_num_threads())

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_session": None}


def usual_runtime(device: torch.device) -> Runtime:
    """Choose ONNX Runtime where it is installed, with the package `onnx` that makes its models, and no GPU computes.

    Example:
        >>> usual_runtime(torch.device("cuda"))
        'torch'
    """
    installed = find_spec("onnxruntime") is not None and find_spec("onnx") is not None
    return "onnx" if installed and device.type == "cpu" else "torch"


def require_device(runtime: Runtime, device: str) -> None:
    """Refuse to compute on a GPU what ONNX Runtime has made on a CPU.

    Raises:
        InputError: a GPU is asked for.
    """
    if runtime == "onnx" and device not in ("auto", "cpu"):
        raise InputError(f"device `{device}`: ONNX Runtime computes on the CPU alone: use cpu, or leave it out")


class FeatureGraph(nn.Module):
    """From uint8 images of shape (n, channels, height, width) to z: crop, normalisation and trunk.

    Args:
        trunk: trunk whose layers it copies.
        statistics: ``mean`` and ``standard_deviation`` of each channel, in units of [0, 1].

    Example:
        >>> from deephash_pipeline import ImageHasher
        >>> hasher = ImageHasher.pretrained("digits-48")
        >>> graph = FeatureGraph(hasher.trunk, hasher.description.statistics)
        >>> graph(torch.zeros(2, 1, 28, 28, dtype=torch.uint8)).shape
        torch.Size([2, 500])
    """

    def __init__(self, trunk: Trunk, statistics: Mapping[str, list[float]]) -> None:
        super().__init__()
        self.trunk: Trunk = copy.deepcopy(trunk).cpu().eval()
        self.mean = torch.tensor(statistics["mean"], dtype=torch.float32)[:, None, None]
        self.deviation = torch.tensor(statistics["standard_deviation"], dtype=torch.float32)[:, None, None]

    def forward(self, images: Tensor) -> Tensor:
        """Compute z, float32 of shape (n, z_dimension)."""
        pixels = centre_crop(images, self.trunk.image_size).float()
        z: Tensor = self.trunk((pixels / 255 - self.mean) / self.deviation)
        return z


def trace(graph: nn.Module, image_shape: tuple[int, ...], file: Path | IO[bytes], *outputs: str) -> None:
    """Write a graph of uint8 images of a shape (channels, height, width), for any number of them, as ONNX.

    Args:
        graph: module that makes as many tensors as there are names.
        image_shape: shape of an image.
        file: the file, or what takes its bytes.
        outputs: names of what it makes.

    Raises:
        InputError: a layer has no form there.
    """
    examples = torch.zeros((2, *image_shape), dtype=torch.uint8)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            # That shapes are constants is meant; and PyTorch's other exporter takes ten to fifty times as long.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                graph,
                (examples,),
                str(file) if isinstance(file, Path) else file,  # type: ignore[arg-type]
                dynamo=False,
                opset_version=18,
                input_names=[IMAGES],
                output_names=list(outputs),
                dynamic_axes={name: {0: "n"} for name in (IMAGES, *outputs)},
            )
    except (torch.onnx.errors.OnnxExporterError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"this network has no form in ONNX ({reason[:200]}): choose another `network`") from error
