"""What lies in the folder of an index: its codes, the hasher that made them, and pictures that are nowhere else."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashers import BaseHasher, OnnxHasher
from deephash_pipeline.provenance import content_digest
from deephash_pipeline.search import HammingIndex
from deephash_pipeline.search.replacing import HASHER, ONNX_HASHER

if TYPE_CHECKING:
    from deephash_pipeline.deephash import ImageHasher

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
    return type(hasher).load(folder / HASHER, "cpu").digest == hasher.digest


def require_maker(index: HammingIndex, folder: Path) -> None:
    """Compare the hasher of an index with the one that made its codes; one of an earlier version learns which that is.

    Raises:
        InputError: it is another.
    """
    digest, made_by = content_digest(folder / HASHER), index.made_by
    if made_by is None and not index.read_only:
        index.mark(digest)
    elif made_by not in (None, digest):
        raise InputError(
            f"{folder / HASHER} is not the hasher that made the codes of this index: put that one back, or build "
            "images into another folder"
        )
