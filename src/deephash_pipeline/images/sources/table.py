"""Image files that a CSV lists, with columns `path`, `label` and perhaps `split`."""

import os
import warnings
from pathlib import Path
from typing import Literal

import pandas as pd
from pydantic import Field

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import is_remote, joined_address, local_path, reached
from deephash_pipeline.images.sources.collection import (
    SPLITS_ALLOWED,
    ImageCollection,
    by_class,
    collect,
    name_below,
    require_files,
)
from deephash_pipeline.images.sources.source import ListedImages

SPLIT_NAMES = {
    **dict.fromkeys(("training", "train"), "training"),
    **dict.fromkeys(("validation", "valid", "val"), "validation"),
    **dict.fromkeys(("query", "test"), "query"),
}


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
        r"""List the images of the CSV without decoding any.

        Its rows are `path` (from the raw folder), `label` (the name of a class, or several) and perhaps `split`
        (training or train, validation, valid or val, query or test).

        Raises:
            InputError: if a row names no class, a missing file, a file twice or an unknown split; see also
                `read_listing` and `collect`. Rows are numbered as in a spreadsheet, the header being row 1.

        Example:
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     for name in ("1.png", "2.png"):
            ...         Path(folder, name).touch()
            ...     _ = Path(folder, "images.csv").write_text("path,label\n1.png,dog\n2.png,cat\n")
            ...     source = CsvSource(kind="csv", image_size=32, channels=3)
            ...     source.read(Path(folder)).splits["all"].ids
            ['2.png', '1.png']
        """
        path = folder / self.file
        table = read_listing(path, {"label"})
        found: dict[str, list[tuple[str, list[str]]]] = {}
        given = table["split"] if "split" in table else [None] * len(table)
        for row, name, label, split in zip(table.index, table["path"], table["label"], given, strict=True):
            labels = [label] if self.label_separator is None else label.split(self.label_separator)
            named = sorted({part.strip() for part in labels} - {""})
            if not named:
                raise InputError(f"{path}, row {row}: the label is empty; name the class of {name}.")
            known = "all" if split is None else SPLIT_NAMES.get(split.lower())
            if known is None:
                raise InputError(
                    f"{path}, row {row}: the split {split!r} is unknown; take one of {', '.join(SPLIT_NAMES)}."
                )
            found.setdefault(known, []).append((name_below(folder, name), named))
        if set(found) not in SPLITS_ALLOWED:
            raise InputError(
                f"{path} has the splits {', '.join(sorted(found))}: give training and query rows (and "
                "validation), or remove the column `split`."
            )
        require_files(path, folder, [name for rows in found.values() for name, _ in rows])
        rows_of = {split: rows if self.label_separator else by_class(rows) for split, rows in found.items()}
        return collect(rows_of, self.raw(folder))

    def lists(self) -> list[str]:
        """Name the CSV."""
        return [self.file]


def read_csv(path: Path | str, columns: set[str]) -> pd.DataFrame:
    r"""Read a CSV as text, so that a class named `007` or `NA` keeps its name.

    Args:
        path: path of the CSV, on a disk or in an object store.
        columns: columns that it must have.

    Returns:
        Its fields without blanks around them; its index are the numbers of the rows, as in a spreadsheet, the header
        being row 1. Rows without any field are left out.

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
                file,
                dtype=str,
                keep_default_na=False,
                skipinitialspace=True,
                skip_blank_lines=False,
                index_col=False,
                encoding="utf-8-sig",
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
    table.index += 2
    stripped: pd.DataFrame = table.apply(lambda column: column.str.strip())
    stripped = stripped[(stripped != "").any(axis=1)]
    if stripped.empty:
        raise InputError(f"{path} has no row: list the images in it.")
    return stripped


def read_listing(path: Path | str, columns: set[str]) -> pd.DataFrame:
    """Read a CSV of image files, each once: `read_csv` with a column `path`, from the folder of the CSV.

    Raises:
        InputError: also if a path is empty, or two rows are of one file, however they spell its path.
    """
    table = read_csv(path, {"path", *columns})
    folder = str(path).rpartition("/")[0] if is_remote(path) else os.path.dirname(local_path(path)) or "."
    rows: dict[str, int] = {}
    for row, name in zip(table.index, table["path"], strict=True):
        if not name:
            raise InputError(f"{path}, row {row}: the path is empty; name a file or remove the row.")
        if "\0" in name:
            raise InputError(f"{path}, row {row}: the path {name!a} has a NUL, which no file's has; mend the row.")
        place = joined_address(folder, name)
        before = rows.setdefault(place if is_remote(place) else os.path.realpath(local_path(place)), row)
        if before != row:
            raise InputError(f"{path}, row {row}: {name} is in row {before} already; remove one of them.")
    return table
