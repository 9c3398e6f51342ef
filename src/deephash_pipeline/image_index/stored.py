"""What lies in the folder of an index beside its codes: the hasher that made them."""

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from deephash_pipeline.errors import InputError
from deephash_pipeline.hashers import BaseHasher, OnnxHasher
from deephash_pipeline.search import HammingIndex

if TYPE_CHECKING:
    from deephash_pipeline.deephash import ImageHasher

HASHER = "hasher.safetensors"
ONNX_HASHER = "hasher.onnx"

Runtime = Literal["torch", "onnx"]


def stored_hasher(folder: Path, device: str, runtime: Runtime) -> BaseHasher:
    """Load the hasher of an index; see `ImageIndex.open`.

    Raises:
        InputError: there is none for this runtime, or it is damaged.
    """
    if runtime == "onnx":
        if device not in ("auto", "cpu"):
            raise InputError(f"ONNX Runtime computes on the CPU, not on `{device}`: leave out --device")
        hasher = OnnxHasher.load(folder / ONNX_HASHER)
        hasher.require_made_from(folder / HASHER)
        return hasher
    from deephash_pipeline.deephash import ImageHasher  # noqa: PLC0415 - a service by ONNX Runtime has no PyTorch

    return ImageHasher.load(folder / HASHER, device)


def same_hasher(folder: Path, hasher: "ImageHasher") -> bool:
    """Tell whether the index in a folder was made with this hasher."""
    if not (folder / HASHER).is_file():
        return False
    with tempfile.TemporaryDirectory() as temporary:
        hasher.save(Path(temporary) / HASHER)
        return (Path(temporary) / HASHER).read_bytes() == (folder / HASHER).read_bytes()


def delete_index(folder: Path) -> None:
    """Delete an index with all that is in its folder.

    Raises:
        InputError: another process writes it.
    """
    HammingIndex.open(folder).close()
    shutil.rmtree(folder)
