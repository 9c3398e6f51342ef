"""Network weights and hash functions, in safetensors files."""

import json
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy
import safetensors.torch
from torch import Tensor

from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.hashing import ENCODERS, Encoder, load_encoder
from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset


class TensorsDataset(AtomicFileDataset[dict[str, Tensor]]):
    """Named tensors, such as a network's state, loaded on the CPU."""

    def _read(self, path: Path) -> dict[str, Tensor]:
        return safetensors.torch.load_file(path)

    def _write(self, path: Path, content: dict[str, Tensor]) -> None:
        safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in content.items()}, path)


class EncoderDataset(AtomicFileDataset[Encoder]):
    """Anything that maps z to a code: its arrays, with its kind and code length in the file's metadata."""

    def _read(self, path: Path) -> Encoder:
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = json.loads(file.metadata()["encoder"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
        return load_encoder(metadata["kind"], metadata["code_length"], arrays)

    def _write(self, path: Path, content: Encoder) -> None:
        arrays = {name: np.ascontiguousarray(array) for name, array in content.arrays().items()}
        kind = ENCODERS.name_of(type(content))
        # One entry, because safetensors keeps no order among several, and equal encoders should be equal files.
        metadata = {"encoder": json.dumps({"code_length": content.code_length, "kind": kind})}
        safetensors.numpy.save_file(arrays, path, metadata=metadata)


class HasherDataset(AtomicFileDataset[ImageHasher]):
    """A cell with a trunk of its own: all that hashes an image, in one file."""

    def _read(self, path: Path) -> ImageHasher:
        return ImageHasher.load(path)

    def _write(self, path: Path, content: ImageHasher) -> None:
        content.save(path)
