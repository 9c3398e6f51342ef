"""Lists of images with a column for each label, one line ``path 0 1 0 ...`` an image.

This is the format of HashNet, DeepHash-pytorch, OrthoHash and FIRe, for NUS-WIDE, MS-COCO, MIRFlickr and others.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from deephash_pipeline.common.errors import InputError, blamed_on
from deephash_pipeline.images.sources.collection import ImageCollection, Rows, collect, name_below, require_files
from deephash_pipeline.images.sources.source import SplitImages

logger = logging.getLogger(__name__)


class ListSource(SplitImages):
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

    def read(self, folder: Path) -> ImageCollection:
        r"""List the images of the lists in their order, without decoding any; see `collect`.

        Images of the training list are left out of the validation list: there stands the list of a database, which
        often repeats them, and a held-out database is one that no training has seen.

        Raises:
            InputError: see `read_label_list`; also if an image is missing or listed twice.

        Example:
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     Path(folder, "a.jpg").touch()
            ...     _ = Path(folder, "all.txt").write_text("a.jpg 1 1\n")
            ...     source = ListSource(
            ...         kind="list", splits={"all": "all.txt"}, class_names=("sky", "sea"), image_size=32, channels=3
            ...     )
            ...     source.read(Path(folder)).splits["all"].labels
            array([[1, 1]], dtype=uint8)
        """
        given = self.class_names
        names: Sequence[str] | None = _names_in(folder / given) if isinstance(given, str) else given
        found: dict[str, Rows] = {}
        for split, file in self.splits.items():
            rows, names = read_label_list(folder / file, names)
            found[split] = [(name_below(folder, name), labels) for name, labels in rows]
            require_files(folder / file, folder, [name for name, _ in found[split]])
        if {"training", "validation"} <= set(found):
            trained = {name for name, _ in found["training"]}
            held_out = [row for row in found["validation"] if row[0] not in trained]
            repeated = len(found["validation"]) - len(held_out)
            logger.info("%d images of the validation list are training images, and left out of it", repeated)
            found["validation"] = held_out
        return collect(found, self.raw(folder), names)

    def lists(self) -> list[str]:
        """Name the lists, and the file that names the columns."""
        return [*self.splits.values(), *([self.class_names] if isinstance(self.class_names, str) else [])]


def read_label_list(path: Path, class_names: Sequence[str] | None = None) -> tuple[Rows, Sequence[str]]:
    r"""Read a list. Paths may contain spaces; empty lines are passed over.

    Args:
        path: file of the list.
        class_names: names of the columns of 0 and 1 that end each line; None to number those of the first line, whose
            path then must not contain a space.

    Returns:
        The images in the order of the list, and the names of the columns.

    Raises:
        InputError: the file is missing, or a line has another number of columns or something else than 0 and 1.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "train.txt").write_text("a.jpg 0 1 1\nb.jpg 1 0 0\n")
        ...     read_label_list(Path(folder, "train.txt"), ["sky", "sea", "sun"])[0]
        [('a.jpg', ['sea', 'sun']), ('b.jpg', ['sky'])]
    """
    if not path.is_file():
        raise InputError(f"{path} is missing: put the list there, one line `path 0 1 0 ...` an image.")
    with blamed_on(path, "save it again, as UTF-8"):
        text = path.read_text("utf-8-sig")
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise InputError(f"{path} is empty: write one line `path 0 1 0 ...` an image.")
    names = list(map(str, range(len(lines[0][1].split()) - 1))) if class_names is None else class_names
    classes = len(names)
    rows = []
    for number, line in lines:
        name, *columns = line.rsplit(maxsplit=classes)
        if classes < 2 or len(columns) != classes or not set(columns) <= {"0", "1"}:
            raise InputError(
                f"{path}, line {number}: {line[:60]!r} is no path and {classes} columns of 0 and 1: write one column "
                "for each class, or mend `class_names`."
            )
        rows.append((name, [label for label, column in zip(names, columns, strict=True) if column == "1"]))
    return rows, names


def _names_in(path: Path) -> list[str]:
    with blamed_on(path, "write the name of a class on each line, in UTF-8"):
        return [line.strip() for line in path.read_text("utf-8-sig").splitlines() if line.strip()]
