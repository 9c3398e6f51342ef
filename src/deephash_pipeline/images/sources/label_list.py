"""Lists of images with a column for each label, one line ``path 0 1 0 ...`` an image.

This is the format of HashNet, DeepHash-pytorch, OrthoHash and FIRe, for NUS-WIDE, MS-COCO, MIRFlickr and others.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.image_files import ImageFiles
from deephash_pipeline.images.sources.collection import SPLITS_ALLOWED, ImageCollection, ImageSet, name_below
from deephash_pipeline.images.sources.source import ListedImages

logger = logging.getLogger(__name__)


class ListSource(ListedImages):
    """Image files with several labels, listed as other toolboxes do it: a line ``path 0 1 0 ...`` an image.

    `splits` says which list in the raw folder, where paths begin, is which split; `class_names` names the columns, or
    the file in the raw folder that does, a name on each line.

    Example:
        >>> ListSource(kind="list", image_size=32, channels=3, class_names=("sky", "sea")).splits
        {'training': 'train.txt', 'query': 'test.txt'}
    """

    kind: Literal["list"]
    splits: dict[str, str] = Field(default={"training": "train.txt", "query": "test.txt"})
    class_names: tuple[str, ...] | str | None = None

    @model_validator(mode="after")
    def _splits_are_complete(self) -> "ListSource":
        if set(self.splits) not in SPLITS_ALLOWED:
            raise ValueError("splits must name the lists of training and query (and validation), or of all alone")
        return self

    def read(self, folder: Path) -> ImageCollection:
        """List the images."""
        raw = ImageFiles(folder, [], self.image_size, self.channels)
        return list_label_lists(raw, self.splits, self.class_names)

    def lists(self) -> list[str]:
        """Name the lists, and the file that names the columns."""
        return [*self.splits.values(), *([self.class_names] if isinstance(self.class_names, str) else [])]


class LabelList(NamedTuple):
    """What a list says: ids, which are paths, and labels, uint8 of shape (n, classes).

    Example:
        >>> LabelList(["a.jpg"], np.array([[0, 1, 1]], dtype=np.uint8)).labels.sum()
        np.uint64(2)
    """

    ids: list[str]
    labels: NDArray[np.uint8]


def read_label_list(path: Path, classes: int | None = None) -> LabelList:
    r"""Read a list. Paths may contain spaces; empty lines are passed over.

    Args:
        path: file of the list.
        classes: number of columns of 0 and 1 that end each line; None to count them in the first line, whose path then
            must not contain a space.

    Raises:
        InputError: the file is missing, or a line has another number of columns or something else than 0 and 1.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "train.txt").write_text("a.jpg 0 1 1\nb.jpg 1 0 0\n")
        ...     read_label_list(Path(folder, "train.txt")).labels.tolist()
        [[0, 1, 1], [1, 0, 0]]
    """
    try:
        lines = [
            (number, line.strip()) for number, line in enumerate(path.read_text("utf-8-sig").splitlines(), start=1)
        ]
    except FileNotFoundError as error:
        raise InputError(f"{path} is missing: put the list there, one line `path 0 1 0 ...` an image.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as text ({error}): save it again, as UTF-8.") from error
    lines = [(number, line) for number, line in lines if line]
    if not lines:
        raise InputError(f"{path} is empty: write one line `path 0 1 0 ...` an image.")
    classes = len(lines[0][1].split()) - 1 if classes is None else classes
    labels = np.zeros((len(lines), classes), dtype=np.uint8)
    ids = []
    for row, (number, line) in enumerate(lines):
        name, *columns = line.rsplit(maxsplit=classes)
        if classes < 2 or len(columns) != classes or not set(columns) <= {"0", "1"}:
            raise InputError(
                f"{path}, line {number}: {line[:60]!r} is no path and {classes} columns of 0 and 1: write one column "
                "for each class, or mend `class_names`."
            )
        ids.append(name)
        labels[row] = [column == "1" for column in columns]
    return LabelList(ids, labels)


def list_label_lists(
    raw: ImageFiles, lists: Mapping[str, str], class_names: Sequence[str] | str | None
) -> ImageCollection:
    r"""List the images of such lists, without decoding any.

    Images of the training list are left out of the validation list: there stands the list of a database, which often
    repeats them, and a held-out database is one that no training has seen.

    Args:
        raw: the folder where paths begin, and what its files are decoded to.
        lists: split name -> list below the folder.
        class_names: names of the columns, or a file below the folder with a name on each line; None to number them.

    Returns:
        The splits, rows in the order of the lists. Labels are multi-hot; or, where every image of every list has
        exactly one, class numbers, which all methods take.

    Raises:
        InputError: see `read_label_list`; also if an image is missing or listed twice, or the lists differ in columns.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     Path(folder, "a.jpg").touch()
        ...     _ = Path(folder, "all.txt").write_text("a.jpg 1 1\n")
        ...     raw = ImageFiles(Path(folder), [], 32, 3)
        ...     list_label_lists(raw, {"all": "all.txt"}, ["sky", "sea"]).splits["all"].labels
        array([[1, 1]], dtype=uint8)
    """
    root = raw.root
    names = _class_names(root, class_names)
    read: dict[str, LabelList] = {}
    for split, file in lists.items():
        as_written = read_label_list(root / file, None if names is None else len(names))
        read[split] = as_written._replace(ids=[name_below(root, name) for name in as_written.ids])
        missing = [name for name in read[split].ids if not (root / name).is_file()]
        if missing:
            raise InputError(
                f"{root / file}: the file {root / missing[0]} is missing ({len(missing)} such lines in all); paths "
                f"start at {root}, mend them or put the images there."
            )
    if len({of_list.labels.shape[1] for of_list in read.values()}) > 1:
        raise InputError(f"the lists {', '.join(lists.values())} differ in their number of columns: name the classes.")
    if {"training", "validation"} <= set(read):
        read["validation"] = _without(read["validation"], set(read["training"].ids))
    names = [str(column) for column in range(next(iter(read.values())).labels.shape[1])] if names is None else names
    return collect_labelled(read, raw, names)


def collect_labelled(found: Mapping[str, LabelList], raw: ImageFiles, class_names: Sequence[str]) -> ImageCollection:
    """Make a collection of image files with labels; class numbers where each image has one."""
    one_each = all((of_split.labels.sum(axis=1) == 1).all() for of_split in found.values())
    splits = {}
    for split, (ids, multi_hot) in found.items():
        labels = multi_hot.argmax(axis=1).astype(np.int64) if one_each else multi_hot
        splits[split] = ImageSet(raw.of(ids), labels, ids)
    return ImageCollection(splits, list(class_names))


def _class_names(root: Path, class_names: Sequence[str] | str | None) -> list[str] | None:
    if not isinstance(class_names, str):
        return None if class_names is None else list(class_names)
    path = root / class_names
    try:
        return [line.strip() for line in path.read_text("utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: write the name of a class on each line, in UTF-8.") from error


def _without(of_list: LabelList, others: set[str]) -> LabelList:
    kept = np.array([name not in others for name in of_list.ids], dtype=bool)
    if not kept.all():
        logger.info("%d images of the validation list are training images, and left out of it", np.count_nonzero(~kept))
    return LabelList([name for name, keep in zip(of_list.ids, kept, strict=True) if keep], of_list.labels[kept])
