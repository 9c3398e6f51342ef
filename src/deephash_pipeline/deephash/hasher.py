"""An image hasher: images in, short binary codes out, in one file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np
import safetensors
import safetensors.torch
import torch
import xxhash
from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.common.devices import resolve_device
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.outputs import require_replaceable
from deephash_pipeline.common.own_settings import own_settings
from deephash_pipeline.common.stores import replacing
from deephash_pipeline.common.writing import cannot_write
from deephash_pipeline.deephash.experiment import Run
from deephash_pipeline.deephash.features import FeatureExtractor, require_device
from deephash_pipeline.deephash.training_set import TrainingSet
from deephash_pipeline.hashers import BaseHasher, HasherDescription
from deephash_pipeline.hashers.base import EncodedPixels, Runtime
from deephash_pipeline.hashers.files import ENCODER, HASHER_KEY, is_hasher
from deephash_pipeline.hashing import ENCODERS, Encoder, load_encoder
from deephash_pipeline.images.batches import Images
from deephash_pipeline.networks import Trunk, TrunkParameters, build_trunk
from deephash_pipeline.provenance import code_version
from deephash_pipeline.retrieval import pack_bits

HASHER_FORMAT = 1
TRUNK = "trunk."
ABOUT_CODES = {"network", "image_shape", "code_length", "encoder", "statistics", "runtime"}
"""What is in a description that a code depends on."""
IN_FOLDER = "model.safetensors"
IN_INDEX = "hasher.safetensors"
"""Name of the file in a folder for the Hugging Face Hub."""


class ImageHasher(BaseHasher):
    """Pixel statistics, trunk and encoder: everything between an image and its code, see `BaseHasher`.

    Args:
        trunk: the network below the hash layer, with its weights.
        encoder: z in, bits out.
        description: the rest.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.

    >>> from deephash_pipeline import ImageHasher
    >>> from sklearn.datasets import load_digits
    >>> images = (load_digits().images * 15).astype("uint8")
    >>> hasher = ImageHasher.pretrained("digits-48")
    >>> hasher.encode(images[:5]).shape
    (5, 6)
    """

    def __init__(self, trunk: Trunk, encoder: Encoder, description: HasherDescription, device: str = "auto") -> None:
        self._compose(trunk, encoder, description, device)

    def _compose(self, trunk: Trunk, encoder: Encoder, description: HasherDescription, device: str) -> None:
        if encoder.n_features_in_ != trunk.z_dimension:
            raise InputError(
                f"the encoder takes {encoder.n_features_in_} features, the network gives {trunk.z_dimension}: "
                "use the trunk that it was learned on"
            )
        self._parts = (trunk.eval(), encoder, description)
        self.to(device)

    @classmethod
    def assemble(cls, trunk: Trunk, encoder: Encoder, training_set: TrainingSet, run: Run) -> ImageHasher:
        """Put a hasher together from what a training has left."""
        description = HasherDescription(
            network=run.experiment.network,
            trunk=run.experiment.trunk.of_hasher(),
            image_shape=training_set.images.shape[1:],
            code_length=encoder.code_length,
            method=run.cell.method,
            encoder=ENCODERS.name_of(type(encoder)),
            class_names=tuple(training_set.class_names),
            statistics=dict(training_set.statistics),
            benchmark=run.experiment.benchmark,
            seed=run.experiment.seed,
            training_images=len(training_set.images),
            code_version=code_version(Path(__file__).parent),
        )
        return ImageHasher(trunk, encoder, description, run.experiment.device)

    @classmethod
    @own_settings()
    def load(cls, path: str | Path, device: str = "auto") -> ImageHasher:
        """Read a hasher from its file, from the folder that `deephash.export.export_huggingface` wrote, or of an index.

        A file of a version before 0.3 has no digest of its weights: it is taken as it is, and gets one by `save`.

        Raises:
            InputError: the file is not there, is damaged, or is no hasher.
        """
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"a hasher is loaded from the path of its file, and not from {path!r}")
        path = Path(path)
        if path.is_dir():
            path /= IN_INDEX if (path / IN_INDEX).is_file() else IN_FOLDER
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
        except FileNotFoundError:
            raise InputError(f"hasher {path} is not there: make it by `deephash-pipeline hasher`") from None
        except (OSError, safetensors.SafetensorError) as error:
            raise InputError(f"hasher {path} cannot be read, {error}: make or copy it again") from error
        return cls._from_tensors(tensors, metadata, str(path), device)

    @classmethod
    def pretrained(cls, name: str, device: str = "auto") -> ImageHasher:
        """Read one of the hashers that come with the package.

        Args:
            name: ``digits-48``, ``mnist-48``, ``cifar10-48``; or for photographs ``photos-64``, ``photos-128``,
                ``photos-256``, whose network comes with the extra ``photos``.
            device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.

        Raises:
            InputError: unknown name, and the message lists those there are; or the network is not installed.
        """
        folder = Path(__file__).parent / "pretrained"
        there = {file.stem: file for file in sorted(folder.glob("*.safetensors"))}
        if name not in there:
            raise InputError(f"unknown hasher `{name}`: choose one of {', '.join(there)}")
        return cls.load(there[name], device)

    @classmethod
    def _from_tensors(
        cls, tensors: Mapping[str, Tensor], metadata: Mapping[str, str], origin: str, device: str
    ) -> ImageHasher:
        extractor = None
        try:
            content = json.loads(metadata[HASHER_KEY])
            if content["format"] != HASHER_FORMAT:
                raise ValueError(f"it is of format {content['format']}, this version reads {HASHER_FORMAT}")
            description = HasherDescription.model_validate(content["description"])
            if content.get("digest", digest := _digest(tensors, description)) != digest:
                raise ValueError("its weights are not those that were saved")
            if weights := _below(TRUNK, tensors):
                parameters = TrunkParameters.model_validate(description.trunk)
                trunk = build_trunk(description.network, description.image_shape, parameters)
                trunk.load_state_dict(weights)
            else:
                extractor = FeatureExtractor.of(description, device)
                trunk, description = extractor.trunk, description.model_copy(update={"runtime": extractor.runtime})
            arrays = {name: tensor.numpy() for name, tensor in _below(ENCODER, tensors).items()}
            encoder = load_encoder(description.encoder, description.code_length, arrays)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:300]
            raise InputError(f"{origin} is not a hasher of this version ({reason}): make it again") from error
        hasher = ImageHasher(trunk, encoder, description, device)
        hasher._extractor = extractor or hasher._extractor
        return hasher

    def save(self, path: str | Path, half: bool = False, trunk: bool = True) -> None:
        """Write one safetensors file, whole or not at all; see `content`. It takes the place of a hasher alone.

        Raises:
            InputError: it cannot be written, or something else is there.
        """
        require_replaceable(Path(path), is_hasher)
        try:
            with replacing(Path(path)) as beside:
                beside.write_bytes(self.content(half, trunk))
        except OSError as error:
            raise cannot_write(f"hasher {path}", error) from error

    @own_settings()
    def content(self, half: bool = False, trunk: bool = True) -> bytes:
        """Give the content of the hasher's file; equal hashers give equal files.

        Args:
            half: store the trunk's weights in half precision. Of a loaded hasher a few bits of a thousand codes differ.
            trunk: store the network. Without it, its pretrained weights are taken from their package when the hasher is
                loaded, and the hash function's numbers of single precision are stored in half precision.
        """
        description, tensors = self.description, self._tensors(half)
        if not trunk:
            tensors = {
                name: tensor.half() if tensor.dtype == torch.float32 else tensor
                for name, tensor in tensors.items()
                if not name.startswith(TRUNK)
            }
        content = {
            "format": HASHER_FORMAT,
            "description": description.model_dump(mode="json"),
            "digest": _digest(tensors, description),
        }
        # One entry, because safetensors keeps no order among several.
        return safetensors.torch.save(tensors, {HASHER_KEY: json.dumps(content, sort_keys=True)})

    def _tensors(self, half: bool = False) -> dict[str, Tensor]:
        trunk, encoder, _ = self._fitted()
        tensors = {f"{TRUNK}{name}": tensor.cpu().contiguous() for name, tensor in trunk.state_dict().items()}
        if half:
            tensors = {
                name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()
            }
        for name, array in encoder.arrays().items():
            tensors[f"{ENCODER}{name}"] = torch.from_numpy(np.ascontiguousarray(array))
        return tensors

    @property
    def digest(self) -> str:
        """Of all that a code depends on; hashers that give the same codes by the same weights have the same."""
        return self.digest_by(self.description.runtime)

    def digest_by(self, runtime: Runtime) -> str:
        """The digest that this hasher would have if a runtime computed its features."""
        return _digest(self._tensors(), self.description.model_copy(update={"runtime": runtime}))

    @own_settings()
    def features(self, images: Images) -> NDArray[np.float32]:
        """Responses z of the layer below the hash layer, float32 of shape (n, z_dimension)."""
        blocks = [self.extractor(batch.pixels) for batch in self._batches(images, "raise")]
        return np.concatenate(blocks) if blocks else np.empty((0, self.z_dimension), np.float32)

    @own_settings()
    def encode_pixels(self, pixels: NDArray[np.uint8]) -> EncodedPixels:
        """Codes and features of decoded images, see `BaseHasher`."""
        z = self.extractor(pixels)
        return EncodedPixels(pack_bits(self.encoder.transform(z)), z)

    def __sklearn_is_fitted__(self) -> bool:
        """Say so to scikit-learn, of hashers that it may ask."""
        return hasattr(self, "_parts")

    def _fitted(self) -> tuple[Trunk, Encoder, HasherDescription]:
        if not self.__sklearn_is_fitted__():
            raise InputError(f"this {type(self).__name__} has learned nothing yet: call fit, or load a hasher")
        return self._parts

    @property
    def description(self) -> HasherDescription:
        """What is stored beside the weights."""
        return self._fitted()[2]

    @property
    def trunk(self) -> Trunk:
        """The network below the hash layer."""
        return self._fitted()[0]

    @property
    def encoder(self) -> Encoder:
        """What maps z to bits."""
        return self._fitted()[1]

    @property
    def extractor(self) -> FeatureExtractor:
        """What computes z."""
        self._fitted()
        return self._extractor

    @property
    def z_dimension(self) -> int:
        """Length of z."""
        return self._fitted()[0].z_dimension

    @own_settings()
    def to(self, device: str) -> Self:
        """Compute on another device from now on.

        Raises:
            InputError: there is no such device, or it is a GPU and the codes are made by ONNX Runtime.
        """
        trunk, _, description = self._fitted()
        require_device(description.runtime, device)
        self._extractor = FeatureExtractor(trunk, description.statistics, resolve_device(device), description.runtime)
        return self


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _digest(tensors: Mapping[str, Tensor], description: HasherDescription) -> str:
    # Files of versions without ONNX Runtime keep their digests.
    about = description.model_dump(mode="json", include=ABOUT_CODES, exclude_defaults=True)
    if description.trunk.get("unit_length"):
        about["unit_length"] = True
    hashed = xxhash.xxh3_128(json.dumps(about, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        hashed.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        hashed.update(tensor.numpy().tobytes())
    return hashed.hexdigest()
