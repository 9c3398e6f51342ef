"""What lies in the folder of an index: its codes, the hasher that made them, and pictures that are nowhere else."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashers import BaseHasher, OnnxHasher
from deephash_pipeline.provenance import content_digest
from deephash_pipeline.search import HammingIndex
from deephash_pipeline.search.images.pictures import PICTURE, PICTURES
from deephash_pipeline.search.locking import LOCK
from deephash_pipeline.search.store import LEDGER, SEGMENT_NAME, SEGMENTS

if TYPE_CHECKING:
    from deephash_pipeline.deephash import ImageHasher

HASHER = "hasher.safetensors"
ONNX_HASHER = "hasher.onnx"
OWN_FILE = re.compile(
    rf"{re.escape(LEDGER)}(-wal|-shm|-journal)?|{re.escape(LOCK)}|{SEGMENTS}/{SEGMENT_NAME.pattern}|"
    rf"{PICTURE.pattern}|{re.escape(ONNX_HASHER)}|{re.escape(HASHER)}(\.provenance\.json)?|\.hasher\..+"
)

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


def own_files(folder: Path) -> Iterator[Path]:
    """The files of an index.

    Raises:
        InputError: the folder has something that no index makes.
    """
    for place, folders, files in os.walk(folder):
        below = Path(place)
        for name in (*files, *folders):
            path = below / name
            inside = path.relative_to(folder).as_posix()
            is_folder = name in folders and not path.is_symlink()
            if not (inside in (SEGMENTS, PICTURES) if is_folder else OWN_FILE.fullmatch(inside)):
                raise InputError(f"{folder} has {inside}, which is of no index: move it, or build into another folder")
            if not is_folder:
                yield path


def former_place(folder: Path) -> Path:
    """Where an index lies for a moment while another takes its place."""
    return folder.with_name(f".{folder.name}.former")


def delete_index(folder: Path) -> None:
    """Delete an index, and the folder if it then is empty; other files stay.

    Raises:
        InputError: the folder has something that no index makes.
    """
    for path in list(own_files(folder)):
        path.unlink(missing_ok=True)
    for path in (folder / SEGMENTS, folder / PICTURES, folder):
        with suppress(OSError):
            path.rmdir()
