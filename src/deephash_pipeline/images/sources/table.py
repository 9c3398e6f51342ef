"""Image files that a CSV lists, with columns `path`, `label` and perhaps `split`."""

import os
import warnings
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import is_remote, joined, local_path, reached
from deephash_pipeline.images.decoding.image_files import Channels, ImageFiles
from deephash_pipeline.images.sources.collection import (
    SPLITS_ALLOWED,
    ImageCollection,
    collect_files,
    name_below,
    natural_order,
)
from deephash_pipeline.images.sources.label_list import LabelList, collect_labelled
from deephash_pipeline.images.sources.source import ListedImages

SPLIT_NAMES = {
    **dict.fromkeys(("training", "train"), "training"),
    **dict.fromkeys(("validation", "valid", "val"), "validation"),
    **dict.fromkeys(("query", "test"), "query"),
}
FIRST_ROW = 2


class CsvSource(ListedImages):
    """Image files that a CSV in the raw folder lists, with columns path, label and perhaps split.

    `label_separator` stands between the labels of an image that may have several, as in ``sky;sea``.

    Example:
        >>> CsvSource(kind="csv", image_size=32, channels=3, label_separator=";").file
        'images.csv'
    """

    kind: Literal["csv"]
    file: str = "images.csv"
    label_separator: str | None = Field(default=None, min_length=1)

    def read(self, folder: Path) -> ImageCollection:
        """List the images."""
        path = folder / self.file
        return list_table(path, self.image_size, self.channels, self.label_separator)

    def lists(self) -> list[str]:
        """Name the CSV."""
        return [self.file]


def read_csv(path: Path | str, columns: set[str]) -> pd.DataFrame:
    r"""Read a CSV as text, so that a class named `007` or `NA` keeps its name.

    Args:
        path: path of the CSV, on a disk or in an object store.
        columns: columns that it must have.

    Returns:
        Its fields without blanks around them.

    Raises:
        InputError: if the file is missing, no CSV or without rows, or lacks a column.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "images.csv").write_text("path, label\na.png, 007\n")
        ...     read_csv(Path(folder, "images.csv"), {"path", "label"})["label"].tolist()
        ['007']
    """
    try:
        with (
            reached(path) as (filesystem, place),
            filesystem.open(place, "rb") as file,
            warnings.catch_warnings(category=pd.errors.ParserWarning, action="error"),
        ):
            # Without an index pandas warns of longer rows; else it would shift all columns by one.
            table = pd.read_csv(
                file, dtype=str, keep_default_na=False, skipinitialspace=True, index_col=False, encoding="utf-8-sig"
            )
    except pd.errors.ParserWarning as error:
        raise InputError(f"{path} has rows of more fields than its first line: name or remove the last.") from error
    except FileNotFoundError as error:
        raise InputError(f"{path} is missing: put it there, with the columns {', '.join(sorted(columns))}.") from error
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as CSV ({error}): save it again, as UTF-8.") from error
    table.columns = table.columns.str.strip()
    if lacking := columns - set(table.columns):
        raise InputError(
            f"{path} has no column {', '.join(sorted(lacking))}, it has {', '.join(table.columns)}: name its columns "
            "in the first line, with commas between them."
        )
    if table.empty:
        raise InputError(f"{path} has no row: list the images in it.")
    stripped: pd.DataFrame = table.apply(lambda column: column.str.strip())
    return stripped


def read_listing(path: Path | str, columns: set[str]) -> pd.DataFrame:
    """Read a CSV of image files, each once: `read_csv` with a column `path`, from the folder of the CSV.

    Raises:
        InputError: also if a path is empty, or two rows are of one file, however they spell its path.
    """
    table = read_csv(path, {"path", *columns})
    folder = str(path).rpartition("/")[0] if is_remote(path) else os.path.dirname(local_path(path)) or "."
    rows: dict[str, int] = {}
    for row, name in enumerate(table["path"], start=FIRST_ROW):
        if not name:
            raise InputError(f"{path}, row {row}: the path is empty; name a file or remove the row.")
        place = joined(folder, name)
        before = rows.setdefault(place if is_remote(place) else os.path.realpath(local_path(place)), row)
        if before != row:
            raise InputError(f"{path}, row {row}: {name} is in row {before} already; remove one of them.")
    return table


def list_table(path: Path, image_size: int, channels: Channels, label_separator: str | None = None) -> ImageCollection:
    r"""List the images of a CSV without decoding any.

    Args:
        path: path of the CSV; its rows are `path` (from the folder of the CSV), `label` (the name of a class, or
            several) and perhaps `split` (training or train, validation, valid or val, query or test).
        image_size: height and width to decode to, in pixels.
        channels: 1 for grey, 3 for colour.
        label_separator: text between the labels of an image in the column `label`, such as ";"; None where each image
            has one label.

    Raises:
        InputError: if a row names no class, a missing file, a file twice or an unknown split; see also `read_listing`
            and `collect_files`. Rows are numbered as in a spreadsheet, the header being row 1.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     for name in ("1.png", "2.png"):
        ...         Path(folder, name).touch()
        ...     _ = Path(folder, "images.csv").write_text("path,label\n1.png,dog\n2.png,cat\n")
        ...     list_table(Path(folder, "images.csv"), 32, 3).splits["all"].ids
        ['2.png', '1.png']
    """
    table = read_listing(path, {"label"})
    names = [name_below(path.parent, name) for name in table["path"]]
    labels = table["label"].tolist()
    given = table["split"].tolist() if "split" in table else ["all"] * len(table)
    splits = [SPLIT_NAMES.get(split.lower(), "") for split in given] if "split" in table else given

    found: dict[str, dict[str, list[str]]] = {}
    several: dict[str, dict[str, set[str]]] = {}
    for row, (name, label, split) in enumerate(zip(names, labels, splits, strict=True), start=FIRST_ROW):
        if not label:
            raise InputError(f"{path}, row {row}: the label is empty; name the class of {name}.")
        if not split:
            known = ", ".join(SPLIT_NAMES)
            raise InputError(
                f"{path}, row {row}: the split {given[row - FIRST_ROW]!r} is unknown; take one of {known}."
            )
        if not (path.parent / name).is_file():
            missing = sum(not (path.parent / other).is_file() for other in names)
            raise InputError(
                f"{path}, row {row}: the file {path.parent / name} is missing ({missing} such rows in all); "
                "paths start at the folder of the CSV, mend them or remove the rows."
            )
        if label_separator is None:
            found.setdefault(split, {}).setdefault(label, []).append(name)
        else:
            named = {part.strip() for part in label.split(label_separator)}
            several.setdefault(split, {})[name] = named - {""}
    if set(found or several) not in SPLITS_ALLOWED:
        raise InputError(
            f"{path} has the splits {', '.join(sorted(found or several))}: give training and query rows (and "
            "validation), or remove the column `split`."
        )
    raw = ImageFiles(path.parent, [], image_size, channels)
    return _collect_several(several, raw) if several else collect_files(found, raw)


def _collect_several(found: dict[str, dict[str, set[str]]], raw: ImageFiles) -> ImageCollection:
    """Make a collection of images with any number of labels: split -> path -> labels, rows in the order of the CSV."""
    every = chain.from_iterable(labels for rows in found.values() for labels in rows.values())
    class_names = sorted(set(every), key=natural_order)
    columns = {name: column for column, name in enumerate(class_names)}
    lists = {}
    for split, rows in found.items():
        multi_hot = np.zeros((len(rows), len(class_names)), dtype=np.uint8)
        for row, labels in enumerate(rows.values()):
            multi_hot[row, [columns[label] for label in labels]] = 1
        lists[split] = LabelList(list(rows), multi_hot)
    return collect_labelled(lists, raw, class_names)
