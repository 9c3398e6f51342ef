"""Decoded images with their labels and ids, and the named splits that a source offers."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.errors import InputError

LARGEST_ARRAY_IN_MEMORY = 2 * 2**30
ROWS_PER_BLOCK = 1024
SPLITS_TO_TRAIN_FROM = ("all", "training")


def allocate_images(shape: tuple[int, int, int, int]) -> NDArray[np.uint8]:
    """Return an unfilled uint8 array of shape (n, c, h, w) that may exceed the memory.

    Beyond 2 GiB the array lies in a temporary file (in the folder that TMPDIR names) which vanishes with the array, so
    that a benchmark of 20 GB can be read on a machine with less memory than that.
    """
    if np.prod(shape, dtype=np.int64) <= LARGEST_ARRAY_IN_MEMORY:
        return np.empty(shape, dtype=np.uint8)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype=np.uint8, mode="w+", shape=shape)


@dataclass(frozen=True)
class ImageSet:
    """Images of one split.

    Attributes:
        images: uint8 of shape (n, c, h, w), values 0..255; possibly a memory map.
        labels: int64 of shape (n,), indices into the class names of the collection.
        ids: n names that tell every image apart, such as its path below the raw folder.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    ids: list[str]

    def __len__(self) -> int:
        return len(self.ids)

    def first(self, count: int) -> "ImageSet":
        """Return the first `count` images as a view."""
        return ImageSet(self.images[:count], self.labels[:count], self.ids[:count])

    def after(self, count: int) -> "ImageSet":
        """Return what follows the first `count` images as a view."""
        return ImageSet(self.images[count:], self.labels[count:], self.ids[count:])

    def take(self, rows: NDArray[np.int64]) -> "ImageSet":
        """Return a copy of the chosen rows, in the order given; copied in blocks, so the source may be a memory map."""
        images = allocate_images((len(rows), *self.images.shape[1:]))
        for start in range(0, len(rows), ROWS_PER_BLOCK):
            block = rows[start : start + ROWS_PER_BLOCK]
            images[start : start + len(block)] = self.images[block]
        return ImageSet(images, self.labels[rows], [self.ids[row] for row in rows])


@dataclass(frozen=True)
class ImageCollection:
    """What a source holds: its splits by name, and the names of the classes.

    The splits are "training" and "query" with an optional "validation" where a benchmark fixes them, or "all" where
    `split_collection` is to draw them.

    Raises:
        InputError: if a split's images, labels and ids differ in number, a label is outside the classes, a class has no
            image to train from, two images share an id, or an array is of another type or shape.
    """

    splits: dict[str, ImageSet]
    class_names: list[str]

    def __post_init__(self) -> None:
        for name, split in self.splits.items():
            _check_arrays(name, split)
            _check_labels(name, split.labels, self.class_names)
        check_distinct_ids(self.splits)
        for name in SPLITS_TO_TRAIN_FROM:
            if name in self.splits:
                check_no_empty_class(name, self.splits[name].labels, self.class_names)


def check_no_empty_class(split: str, labels: NDArray[np.int64], class_names: Sequence[str]) -> None:
    """Raise InputError, naming the first class of which the split holds no image."""
    empty = np.flatnonzero(np.bincount(labels, minlength=len(class_names)) == 0)
    if empty.size:
        raise InputError(
            f"class {class_names[empty[0]]!r} has no image in the split {split!r} ({empty.size} such classes in all): "
            "add images of it, remove the class, or leave more images in this split."
        )


def check_distinct_ids(splits: dict[str, ImageSet]) -> None:
    """Raise InputError if an id occurs twice, within a split or across splits: no query may be in the database."""
    ids = list(chain.from_iterable(split.ids for split in splits.values()))
    if len(set(ids)) == len(ids):
        return
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            raise InputError(f"the image id {name!r} occurs twice in {', '.join(splits)}: give each image its own.")
        seen.add(name)


def _check_arrays(name: str, split: ImageSet) -> None:
    images, labels = split.images, split.labels
    if images.dtype != np.uint8 or images.ndim != 4:
        raise InputError(
            f"images of the split {name!r} are {images.dtype} of shape {images.shape}: give uint8 (n, c, h, w)."
        )
    if labels.dtype != np.int64 or labels.ndim != 1:
        raise InputError(f"labels of the split {name!r} are {labels.dtype} of shape {labels.shape}: give int64 (n,).")
    for other, count in (("labels", len(labels)), ("ids", len(split.ids))):
        if count != len(images):
            raise InputError(
                f"the split {name!r} has {len(images)} images but {count} {other}: give one per image, in order."
            )


def _check_labels(name: str, labels: NDArray[np.int64], class_names: Sequence[str]) -> None:
    if labels.size and not 0 <= labels.min() <= labels.max() < len(class_names):
        raise InputError(
            f"labels of the split {name!r} run from {labels.min()} to {labels.max()}, but there are {len(class_names)} "
            f"classes (0..{len(class_names) - 1}): name every class, or mend the labels."
        )
