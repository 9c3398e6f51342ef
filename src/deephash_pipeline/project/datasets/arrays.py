"""Arrays, counts, network weights and hash functions."""

import json
import os
import shutil
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors
import safetensors.numpy
import safetensors.torch
from kedro.io import DatasetError
from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.hashing import ENCODERS, Encoder, load_encoder
from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset
from deephash_pipeline.retrieval import CodeSets

CODE_SETS = ("database", "validation", "query")


class NumpyDataset(AtomicFileDataset[NDArray[Any]]):
    """An array in a ``.npy`` file.

    A memory map of a whole ``.npy`` file is saved as a hard link to it, or copied block by block where links cannot be:
    20 GB of images are neither read into memory nor, where the disk is the same, written twice.

    Args:
        filepath: where the file lies.
        mmap_mode: ``r`` maps the file into memory instead of reading it: for images and features.
        metadata: metadata for Kedro-Viz.
    """

    def __init__(
        self, filepath: str, mmap_mode: Literal["r"] | None = None, metadata: dict[str, Any] | None = None
    ) -> None:
        super().__init__(filepath, metadata)
        self._mmap_mode = mmap_mode

    def _read(self, path: Path) -> NDArray[Any]:
        array = np.load(path, mmap_mode=self._mmap_mode, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise DatasetError(f"{path} is not a .npy file: run the stage that makes it again")
        return array

    def _write(self, path: Path, content: NDArray[Any]) -> None:
        source = _whole_file(content)
        if source is None:
            np.save(path, content, allow_pickle=False)
            return
        try:
            os.link(source, path)
        except OSError:
            shutil.copyfile(source, path)


def _whole_file(content: NDArray[Any]) -> Path | None:
    """Return the ``.npy`` file that a memory map shows, unless it shows a part of it or may be written to."""
    if not isinstance(content, np.memmap) or content.mode != "r" or content.filename is None:
        return None
    path = Path(content.filename)
    try:
        whole = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        return None
    same = (whole.shape, whole.dtype, whole.strides) == (content.shape, content.dtype, content.strides)
    return path if same else None


class CodesDataset(AtomicFileDataset[CodeSets]):
    """Packed codes of database, validation set and queries in one ``.npz`` file, with their code length."""

    def _read(self, path: Path) -> CodeSets:
        with np.load(path, allow_pickle=False) as arrays:
            return CodeSets(**{name: arrays[name] for name in CODE_SETS}, code_length=int(arrays["code_length"]))

    def _write(self, path: Path, content: CodeSets) -> None:
        np.savez(path, **{name: getattr(content, name) for name in CODE_SETS}, code_length=content.code_length)


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
