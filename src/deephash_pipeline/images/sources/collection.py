"""Images with their labels and ids, and the named splits that a source offers."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.image_files import ImageFiles

UNLABELLED = "unlabelled"
"""The one class of a collection without labels."""


def name_below(root: Path, name: str) -> str:
    """Spell a path as it is from a folder, that one file may have one name; one elsewhere stays absolute.

    Example:
        >>> name_below(Path("/photos"), "./a//1.png"), name_below(Path("/photos"), "/photos/a/1.png")
        ('a/1.png', 'a/1.png')
    """
    name, base = os.path.normpath(name), os.path.abspath(root)
    return os.path.relpath(name, base) if Path(name).is_relative_to(base) else name


@dataclass(frozen=True)
class ImageSet:
    """Images of one split.

    Attributes:
        images: uint8 of shape (n, c, h, w), values 0..255, possibly a memory map; or the files to decode them from.
        labels: int64 of shape (n,), indices into the class names of the collection; or, where an image may have any
            number of labels, uint8 of shape (n, classes), 1 for each that it has.
        ids: n different names, such as the path of each image below the raw folder.

    Example:
        >>> cats = ImageSet(np.zeros((3, 1, 8, 8), dtype=np.uint8), np.zeros(3, dtype=np.int64), ids=["a", "b", "c"])
        >>> cats.first(2).ids, cats.after(2).ids, cats.take(np.array([2, 0])).ids
        (['a', 'b'], ['c'], ['c', 'a'])
    """

    images: NDArray[np.uint8] | ImageFiles
    labels: NDArray[np.int64] | NDArray[np.uint8]
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
        """Return the chosen rows, in the order given; an array is copied."""
        return ImageSet(self.images[rows], self.labels[rows], [self.ids[row] for row in rows])


@dataclass(frozen=True)
class ImageCollection:
    """The images of a source: its splits by name, and the names of the classes.

    The splits are "training" and "query" with an optional "validation" where a benchmark fixes them, or "all" where
    `split_collection` is to draw them. Images without labels are of one class, `UNLABELLED`.

    Raises:
        InputError: if a split's images, labels and ids differ in number, a label is outside the classes, there is one
            class only, a class has no image to train from, two images share an id, or an array is of another type or
            shape.

    Example:
        >>> pixels, labels = np.zeros((4, 1, 8, 8), dtype=np.uint8), np.array([0, 1, 0, 1])
        >>> images = ImageSet(pixels, labels, ids=["a", "b", "c", "d"])
        >>> len(ImageCollection({"all": images}, class_names=["cat", "dog"]).splits["all"].first(3))
        3
    """

    splits: dict[str, ImageSet]
    class_names: list[str]

    def __post_init__(self) -> None:
        for name, split in self.splits.items():
            _check_split(name, split, len(self.class_names))
        if len({split.labels.ndim for split in self.splits.values()}) > 1:
            raise InputError("some splits have one label an image and others several: write all of them alike.")
        if len(self.class_names) < 2 and self.class_names != [UNLABELLED]:
            raise InputError(
                f"there is one class only, {', '.join(self.class_names)!r}: retrieval needs two classes, add another."
            )
        if len(set(self.class_names)) < len(self.class_names):
            twice = next(name for name in self.class_names if self.class_names.count(name) > 1)
            raise InputError(f"the class name {twice!r} is given twice: give each class its own.")
        check_distinct_ids(self.splits)
        for name in self.splits.keys() & {"all", "training"}:
            check_no_empty_class(name, self.splits[name].labels, self.class_names)


def require_labels(labels: NDArray[Any], reader: str) -> None:
    """Raise InputError, naming what reads the labels, if they are all alike, as those of images without labels.

    Args:
        labels: int64 of shape (n,), or uint8 of shape (n, classes), n at least 1.
        reader: name of what needs them, such as ``"evaluation"``.

    Example:
        >>> require_labels(np.array([0, 0, 0]), "evaluation")
        Traceback (most recent call last):
        ...
        deephash_pipeline.common.errors.InputError: evaluation needs labels, but all images are of one class: ...
    """
    if (labels == labels[0]).all():
        raise InputError(
            f"{reader} needs labels, but all images are of one class: label them, one folder for each class, or run "
            "only methods that need no labels, which `deephash-pipeline methods` lists"
        )


def require_single_labels(labels: NDArray[Any], reader: str) -> None:
    """Raise InputError, naming what reads the labels, if they may be several for an image.

    Example:
        >>> require_single_labels(np.array([0, 1]), "tuning")
    """
    if labels.ndim != 1:
        raise InputError(f"{reader} needs one label an image, but images here may have several: leave it out.")


def class_sizes(labels: NDArray[Any], classes: int) -> NDArray[np.int64]:
    """Count the images of each class, (classes,); an image with several labels counts for each of them.

    Example:
        >>> class_sizes(np.array([0, 2, 2]), 4), class_sizes(np.array([[1, 1], [0, 1]], dtype=np.uint8), 2)
        (array([1, 0, 2, 0]), array([1, 2]))
    """
    return np.count_nonzero(labels, axis=0) if labels.ndim == 2 else np.bincount(labels, minlength=classes)


def check_no_empty_class(split: str, labels: NDArray[Any], class_names: Sequence[str]) -> None:
    """Raise InputError, naming the first class of which the split has no image.

    Example:
        >>> check_no_empty_class("training", np.array([0, 1, 1]), ["cat", "dog"])
    """
    empty = np.flatnonzero(class_sizes(labels, len(class_names)) == 0)
    if empty.size:
        raise InputError(
            f"class {class_names[empty[0]]!r} has no image in the split {split!r} ({empty.size} such classes in all): "
            "add images of it, remove the class, or leave more images in this split."
        )


def check_distinct_ids(splits: dict[str, ImageSet]) -> None:
    """Raise InputError if an id occurs twice, within a split or across splits: no query may be in the database."""
    seen: set[str] = set()
    for name in chain.from_iterable(split.ids for split in splits.values()):
        if name in seen:
            raise InputError(f"the image id {name!r} occurs twice in {', '.join(splits)}: give each image its own.")
        seen.add(name)


def _check_split(name: str, split: ImageSet, classes: int) -> None:
    images, labels = split.images, split.labels
    sound = images.dtype == np.uint8 and images.ndim == 4 and len(images) == len(labels) == len(split.ids)
    if labels.ndim == 2:
        sound = sound and labels.dtype == np.uint8 and labels.shape[1] == classes and labels.max(initial=0) <= 1
    else:
        sound = sound and labels.dtype == np.int64 and labels.ndim == 1
        sound = sound and labels.min(initial=0) >= 0 and labels.max(initial=0) < classes
    if not sound:
        raise InputError(
            f"the split {name!r} has images of {images.dtype} {images.shape}, labels of {labels.dtype} {labels.shape} "
            f"from {labels.min(initial=0)} to {labels.max(initial=0)} and {len(split.ids)} ids: give images of uint8 "
            f"(n, c, h, w), labels of int64 (n,) below {classes}, the number of classes, or of uint8 (n, {classes}) of "
            "0 and 1, and n ids."
        )


SPLITS_ALLOWED = ({"all"}, {"training", "query"}, {"training", "validation", "query"})


Rows = Sequence[tuple[str, Sequence[str]]]
"""Images that are listed: a path, and names of labels, each."""


def collect(found: Mapping[str, Rows], raw: ImageFiles, class_names: Sequence[str] | None = None) -> ImageCollection:
    """Make a collection of image files.

    Args:
        found: split -> its images; paths are below the folder.
        raw: the folder, and what its files are decoded to.
        class_names: in the order of their numbers; by default those that are found, numbers in them by value.

    Returns:
        The splits, rows in the order given; ids are the paths. Labels are multi-hot; or, where every image has exactly
        one, class numbers, which all methods take.

    Raises:
        InputError: see `ImageCollection`.

    Example:
        >>> from pathlib import Path
        >>> found = {"training": [("a.png", ["10"]), ("b.png", ["2"])], "query": [("c.png", ["2"])]}
        >>> collection = collect(found, ImageFiles(Path("raw"), [], 32, 3))
        >>> collection.class_names, collection.splits["query"].labels.tolist()
        (['2', '10'], [0])
    """
    several = [labels for rows in found.values() for _, labels in rows]
    names = sorted(set(chain.from_iterable(several)), key=natural_order) if class_names is None else list(class_names)
    columns = {name: column for column, name in enumerate(names)}
    splits = {}
    for split, rows in found.items():
        ids = [name for name, _ in rows]
        numbers = [[columns[label] for label in labels] for _, labels in rows]
        if all(len(labels) == 1 for labels in several):
            labels = np.array(numbers, dtype=np.int64).reshape(-1)
        else:
            labels = np.zeros((len(rows), len(names)), dtype=np.uint8)
            for row, own in enumerate(numbers):
                labels[row, own] = 1
        splits[split] = ImageSet(raw.of(ids), labels, ids)
    return ImageCollection(splits, names)


def by_class(rows: Rows) -> Rows:
    """Bring images of one label each into the order of their classes.

    Example:
        >>> by_class([("a.png", ["10"]), ("b.png", ["2"]), ("c.png", ["10"])])
        [('b.png', ['2']), ('a.png', ['10']), ('c.png', ['10'])]
    """
    return sorted(rows, key=lambda row: natural_order(row[1][0]))


def require_files(listing: Path, root: Path, names: Sequence[str]) -> None:
    """Raise InputError if a listing names files that are not there."""
    missing = [name for name in names if not os.path.isfile(root / name)]
    if missing:
        raise InputError(
            f"{listing}: the file {root / missing[0]} is missing ({len(missing)} such lines in all); paths start at "
            f"{root}, mend them or put the images there."
        )


def natural_order(name: str) -> tuple[list[str | tuple[int, str]], str]:
    """Return a key that sorts class 2 before class 10; 01 and 1 are of one value, and always in this order.

    Example:
        >>> sorted(["a10", "a2", "b1"], key=natural_order)
        ['a2', 'a10', 'b1']
    """
    parts: list[str | tuple[int, str]] = list(re.split(r"([0-9]+)", name))
    # As numbers are compared, of however many digits.
    parts[1::2] = [(len(digits), digits) for digits in (str(part).lstrip("0") for part in parts[1::2])]
    return parts, name
