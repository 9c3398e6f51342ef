"""Folder of an index: its codes, the hasher that made them, and pictures that are nowhere else."""

import os
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import flush
from deephash_pipeline.common.writing import cannot_write
from deephash_pipeline.hamming import HammingIndex, Searchable
from deephash_pipeline.hamming.index_folder import HASHER, ONNX_HASHER, PICTURE_MARK, PICTURES, delete_index, is_empty
from deephash_pipeline.hamming.replacing import tidy_former
from deephash_pipeline.hashers import BaseHasher, HasherDescription, OnnxHasher
from deephash_pipeline.hashers.base import EncodedPixels
from deephash_pipeline.hashers.files import read_description
from deephash_pipeline.provenance import content_digest

if TYPE_CHECKING:
    from deephash_pipeline.deephash import ImageHasher


SHIPPED = "photographs"
"""Benchmark of the hashers for photographs that come with the package."""


def is_shipped(hasher: BaseHasher) -> bool:
    """Tell whether a hasher was fitted on the photographs of others."""
    return hasher.description.benchmark == SHIPPED


def picture_name(item_id: str) -> str:
    """The name, without suffix, of the picture of an image of a run's database."""
    return blake2b(item_id.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def write_picture(folder: Path, image: Image.Image, name: str, sync: bool = True) -> str:
    """Write a picture as PNG; return its path from the folder of the index.

    Args:
        folder: folder of the index.
        image: the picture.
        name: name of its file, without suffix.
        sync: True to wait until it is on the disk.

    Raises:
        InputError: the disk is full or cannot be written; no part of the picture is left.
    """
    pictures = folder / PICTURES
    path = pictures / f"{name}.png"
    marked = PngInfo()
    marked.add_text(*PICTURE_MARK)
    try:
        pictures.mkdir(exist_ok=True)
        with open(path, "wb") as file:
            image.save(file, "PNG", pnginfo=marked)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        if sync:
            flush(pictures)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise cannot_write(folder, error) from error
    return f"{PICTURES}/{path.name}"


AskedRuntime = Literal["torch", "onnx", "auto", "late"]
"""What computes codes; ``auto`` is ONNX Runtime wherever the index has a model for it.

``late`` is PyTorch, which is loaded when it computes for the first time.
"""
RUNTIMES = {"torch": "PyTorch", "onnx": "ONNX Runtime"}


class LateHasher(BaseHasher):
    """Hasher of a file, of which no more than the description is read until it computes.

    Args:
        file: the file.
        device: PyTorch device.

    Raises:
        InputError: the file is not there, is damaged, or is no hasher.

    Example:
        >>> LateHasher(Path("nowhere"), "cpu")
        Traceback (most recent call last):
        deephash_pipeline.common.errors.InputError: hasher nowhere cannot be read, ...
    """

    def __init__(self, file: Path, device: str) -> None:
        self._description = read_description(file)
        self._loaded = lru_cache(1)(lambda: _image_hasher().load(file, device))

    @property
    def description(self) -> HasherDescription:
        """What is stored beside the weights."""
        return self._description

    def encode_pixels(self, pixels: NDArray[np.uint8]) -> EncodedPixels:
        """Codes and features of decoded images, see `BaseHasher`."""
        return self._loaded().encode_pixels(pixels)


def stored_hasher(folder: Path, device: str, runtime: AskedRuntime) -> BaseHasher:
    """Load the hasher of an index; see `ImageIndex.open`.

    Args:
        folder: folder of the index.
        device: PyTorch device; ONNX Runtime computes on the CPU.
        runtime: what is to compute.

    Raises:
        InputError: there is none for this runtime, or it is damaged.
    """
    if runtime == "auto":
        # PyTorch and a network of timm take ten seconds of a processor to load.
        if device in ("auto", "cpu") and (folder / ONNX_HASHER).is_file() and find_spec("onnxruntime") is not None:
            with suppress(InputError):
                return stored_hasher(folder, device, "onnx")
        runtime = "torch"
    if runtime == "onnx":
        if device not in ("auto", "cpu"):
            raise InputError(f"device `{device}`: ONNX Runtime computes on the CPU alone: use cpu, or leave it out")
        hasher = OnnxHasher.load(folder / ONNX_HASHER)
        hasher.require_made_from(folder / HASHER)
        return hasher
    return LateHasher(folder / HASHER, device) if runtime == "late" else _image_hasher().load(folder / HASHER, device)


def _image_hasher() -> "type[ImageHasher]":
    from deephash_pipeline.deephash import ImageHasher  # noqa: PLC0415 - a service by ONNX Runtime has no PyTorch

    return ImageHasher


def keep_hasher(index: HammingIndex, hasher: "ImageHasher", folder: Path) -> None:
    """Write the hasher that is to make the codes of an index without items, and mark the index by it."""
    hasher.save(folder / HASHER)
    index.mark(content_digest(folder / HASHER))


def keep_model(folder: Path, hasher: BaseHasher) -> None:
    """Write the hasher as an ONNX model too, where such a one has made the codes: searches need no PyTorch then."""
    if hasher.description.runtime == "onnx" and not isinstance(hasher, OnnxHasher) and not has_model(folder):
        from deephash_pipeline.deephash.export import export_onnx  # noqa: PLC0415 - other indexes need no exporter

        assert isinstance(hasher, _image_hasher())
        # Not every hash function has a form in ONNX.
        with suppress(InputError):
            export_onnx(hasher, folder / ONNX_HASHER)


def has_model(folder: Path) -> bool:
    """Tell whether an index has its hasher as an ONNX model."""
    try:
        stored_hasher(folder, "cpu", "onnx")
    except InputError:
        return False
    return True


def is_foreign_model(hasher: BaseHasher) -> bool:
    """Tell whether ONNX Runtime computes what PyTorch has computed when the index was made."""
    return isinstance(hasher, OnnxHasher) and hasher.description.runtime != "onnx"


def same_hasher(folder: Path, hasher: BaseHasher) -> bool:
    """Tell whether the index in a folder was made with this hasher."""
    if not (folder / HASHER).is_file():
        return False
    if isinstance(hasher, OnnxHasher):
        return hasher.made_from == content_digest(folder / HASHER)
    assert isinstance(hasher, _image_hasher())
    return type(hasher).load(folder / HASHER, "cpu").digest == hasher.digest


def require_same_hasher(folder: Path, hasher: BaseHasher) -> None:
    """Refuse to add what a hasher makes to the index of another.

    Raises:
        InputError: the index in the folder was made with another hasher, or with this one by another runtime.
    """
    if same_hasher(folder, hasher):
        return
    assert isinstance(hasher, _image_hasher()), "a model is opened with the index that it lies in"
    made = type(hasher).load(folder / HASHER, "cpu")
    if made.digest_by(hasher.description.runtime) != hasher.digest:
        raise InputError(f"{folder} was made with another hasher: build into another folder, or add --anew")
    of_index, of_hasher = (RUNTIMES[one.description.runtime] for one in (made, hasher))
    extra = " and the extra `onnx`" if made.description.runtime == "onnx" else ""
    raise InputError(
        f"{folder} was made by {of_index}, and {of_hasher} would compute here, whose codes may differ in a bit: give "
        f"--hasher {folder / HASHER}{extra}, or add --anew"
    )


def make_way(folder: Path, hasher: BaseHasher) -> None:
    """Delete what stands in the way of an index: what a killed replacement has left, and one without items.

    Args:
        folder: folder of the index.
        hasher: hasher that is to make its codes; an index of the same one stays.
    """
    tidy_former(folder)
    if (folder / HASHER).exists() and is_empty(folder) and not same_hasher(folder, hasher):
        delete_index(folder)


def require_begun(index: Searchable, folder: Path) -> None:
    """Refuse an index whose build was killed before it had its hasher.

    Raises:
        InputError: it was.
    """
    if isinstance(index, HammingIndex) and not len(index) and not (folder / HASHER).exists():
        raise InputError(f"{folder} is empty: `deephash-pipeline index build {folder} PATHS` fills it")


def require_maker(index: Searchable, folder: Path) -> None:
    """Compare the hasher in a folder with the one that made some codes; an index of an earlier version learns which.

    Raises:
        InputError: it is another.
    """
    digest, made_by = content_digest(folder / HASHER), index.made_by
    if not isinstance(index, HammingIndex):
        if made_by not in (None, digest):
            raise InputError(
                f"{index.info()['place']} has codes of another hasher than {folder / HASHER}: run `deephash-pipeline "
                "export` again"
            )
    elif made_by is None and not index.read_only:
        index.mark(digest)
    elif made_by not in (None, digest) or index.is_replaced:
        raise InputError(
            f"{folder / HASHER} is not the hasher that made the codes of this index: put that one back, or build "
            "images into another folder"
        )
