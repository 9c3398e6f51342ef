"""Indexes that are made as a whole: of images whose codes are known, or in the place of another."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.folders import INDEX_FILE
from deephash_pipeline.hamming import HammingIndex
from deephash_pipeline.hamming.index_folder import PICTURES
from deephash_pipeline.hamming.replacing import replacing_index
from deephash_pipeline.hashers import BaseHasher
from deephash_pipeline.photographs.changes import has_label
from deephash_pipeline.photographs.index import ImageIndex
from deephash_pipeline.photographs.listing import ListedImage
from deephash_pipeline.photographs.stored import picture_name, same_hasher, write_picture
from deephash_pipeline.photographs.updating import AddedImages, add_files

if TYPE_CHECKING:
    from deephash_pipeline.deephash import ImageHasher


def has_other_hasher(folder: Path, hasher: BaseHasher) -> bool:
    """Tell whether there is an index that was made with another hasher."""
    return (folder / INDEX_FILE).is_file() and not same_hasher(folder, hasher)


@contextmanager
def rebuilt(folder: Path, hasher: BaseHasher, features: bool = False) -> Iterator[ImageIndex]:
    """Give a new index that takes the place of the one in a folder when all has gone well.

    It is made beside the old one, which stays as it is until then, and for good if nothing is added. Pictures that only
    the old one has are encoded anew, and are the first of the new one.

    Args:
        folder: directory of the index, or a symbolic link to it.
        hasher: hasher that makes the codes of the new one.
        features: see `ImageIndex.create`.

    Raises:
        InputError: the folder has files of others, another process writes the index, or nothing was added.
    """
    # A model is of the index that it lies in, and replaces none.
    new = cast("ImageHasher", hasher)
    with replacing_index(folder) as beside, ImageIndex.create(beside, new, features) as images:
        kept = _keep_pictures(folder.resolve(), images)
        yield images
        if len(images) == kept:
            raise InputError(f"no image was added: {folder} stays as it was")


def _keep_pictures(place: Path, images: ImageIndex) -> int:
    """Add the images of an index whose pictures are files nowhere else; return how many."""
    assert images.folder is not None
    with HammingIndex.open(place, read_only=True) as old:
        found = [(item.id, item.metadata) for _, items, _ in old.batches(1000) for item in items]
    kept = [
        ListedImage(str(name), Path(metadata["path"]), metadata.get("label"))
        for name, metadata in found
        if str(metadata.get("path")).startswith(f"{PICTURES}/")
        # The database of a run has its pictures again.
        and Path(metadata["path"]).stem != picture_name(str(name))
    ]
    if kept:
        (images.folder / PICTURES).mkdir()
    for image in kept:
        shutil.copyfile(place / image.path, images.folder / image.path)
    return add_files(images, kept).added


@dataclass(frozen=True, eq=False)
class EncodedDatabase:
    """Images and what a hasher made of them.

    Attributes:
        hasher: hasher that made the codes.
        ids: ids of the images.
        codes: packed, uint8 (n, ceil(code_length / 8)).
        images: uint8 (n, C, H, W).
        labels: names of their classes.

    Example:
        >>> from deephash_pipeline import ImageHasher
        >>> hasher, image = ImageHasher.pretrained("digits-48"), np.zeros((1, 1, 8, 8), dtype=np.uint8)
        >>> EncodedDatabase(hasher, ["zero.png"], hasher.encode(image), image, ["0"]).codes.shape
        (1, 6)
    """

    hasher: "ImageHasher"
    ids: Sequence[str]
    codes: NDArray[np.uint8]
    images: NDArray[np.uint8]
    labels: Sequence[str]

    def __post_init__(self) -> None:
        counts = {len(self.ids), len(self.codes), len(self.images), len(self.labels)}
        if len(counts) > 1:
            raise InputError(f"there are {len(self.codes)} codes of {len(self.images)} images: encode them again")


def write_index(folder: Path, encoded: EncodedDatabase) -> AddedImages:
    """Make an index with pictures of its own, or add to one what it lacks.

    What others have added to the index stays, unless its hasher, a code or a label has become another: then the index
    is made anew.

    Args:
        folder: folder of the index.
        encoded: images and codes that it is to have.

    Raises:
        InputError: another process writes the index, it is damaged, or the disk is full.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from deephash_pipeline import ImageHasher
        >>> hasher, image = ImageHasher.pretrained("digits-48"), np.zeros((1, 1, 8, 8), dtype=np.uint8)
        >>> with TemporaryDirectory() as folder:
        ...     encoded = EncodedDatabase(hasher, ["zero.png"], hasher.encode(image), image, ["0"])
        ...     write_index(Path(folder, "index"), encoded).added
        1
    """
    if not has_other_hasher(folder, encoded.hasher):
        with ImageIndex.create_or_open(folder, encoded.hasher) as images:
            there = [row for row, name in enumerate(encoded.ids) if name in images.index]
            if _agree(images, encoded, there):
                return _add(images, encoded)
    with rebuilt(folder, encoded.hasher) as images:
        return _add(images, encoded)


def _add(images: ImageIndex, encoded: EncodedDatabase) -> AddedImages:
    """Add the images that an index lacks."""
    assert images.folder is not None
    new = [row for row, name in enumerate(encoded.ids) if name not in images.index]
    paths = [
        write_picture(images.folder, _picture(encoded.images[row]), picture_name(encoded.ids[row]), sync=False)
        for row in new
    ]
    # At once for all of them; a file at a time takes a disk's patience.
    os.sync()
    names, labels = ([of_all[row] for row in new] for of_all in (encoded.ids, encoded.labels))
    images.add_codes(names, encoded.codes[new], paths, labels)
    images.compact()
    return AddedImages(added=len(new), there=len(encoded.ids) - len(new))


def _agree(images: ImageIndex, encoded: EncodedDatabase, there: list[int]) -> bool:
    """Whether those images that the index has already, by their rows, have the same codes and labels there."""
    items = images.index.items([encoded.ids[row] for row in there])
    return all(
        has_label(item.metadata, encoded.labels[row]) and np.array_equal(item.code, encoded.codes[row])
        for row, item in zip(there, items, strict=True)
    )


def _picture(pixels: NDArray[np.uint8]) -> Image.Image:
    return Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))
