"""Files found, by split and class -> a collection that is still to be decoded."""

import re
from itertools import chain

import numpy as np

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.image_files import RawFolder
from deephash_pipeline.images.sources.collection import SPLITS_TO_TRAIN_FROM, ImageCollection, ImageSet

SPLITS_ALLOWED = ({"all"}, {"training", "query"}, {"training", "validation", "query"})


def collect_files(found: dict[str, dict[str, list[str]]], raw: RawFolder) -> ImageCollection:
    """Make a collection of image files.

    Args:
        found: split -> class -> paths below the folder.
        raw: the folder, and what its files are decoded to.

    Returns:
        The splits, rows in the order of classes and in a class as they were found. Ids are the paths. Classes are
        sorted by name, numbers in them by value.

    Raises:
        InputError: if a class has images in some split, but none to train from; and see `ImageCollection`.

    Example:
        >>> from pathlib import Path
        >>> found = {"training": {"10": ["a.png"], "2": ["b.png"]}, "query": {"2": ["c.png"]}}
        >>> collection = collect_files(found, RawFolder(Path("raw"), 32, 3))
        >>> collection.class_names, collection.splits["query"].labels.tolist()
        (['2', '10'], [0])
    """
    _check_classes(found)
    class_names = sorted(set(chain.from_iterable(found.values())), key=natural_order)
    splits = {}
    for split, classes in found.items():
        names = [name for class_name in class_names for name in classes.get(class_name, ())]
        counts = [len(classes.get(class_name, ())) for class_name in class_names]
        labels = np.repeat(np.arange(len(class_names), dtype=np.int64), counts)
        splits[split] = ImageSet(raw.files(names), labels, names)
    return ImageCollection(splits, class_names)


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


def _check_classes(found: dict[str, dict[str, list[str]]]) -> None:
    to_train_from = next(split for split in SPLITS_TO_TRAIN_FROM if split in found)
    for split, classes in found.items():
        strange = sorted(set(classes) - set(found[to_train_from]), key=natural_order)
        if strange:
            raise InputError(
                f"the class {strange[0]!r} is in the split {split!r} but not in {to_train_from!r} ({len(strange)} such "
                "classes in all): add images of it to train from, or correct its name."
            )
