"""Folders, globs, files and CSVs, as a user names them -> the images there are."""

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from deephash_pipeline.errors import InputError
from deephash_pipeline.images.batches import SkippedImage
from deephash_pipeline.images.sources.folder import FORMATS, SUFFIXES


class ListedImage(NamedTuple):
    """An image to be added to an index.

    Attributes:
        id: under which it is found; of a listed file its path as it was given.
        path: of the file.
        label: name of its class; None for none.

    Example:
        >>> ListedImage("cat/1.png", Path("cat/1.png"), "cat").label
        'cat'
    """

    id: str
    path: Path
    label: str | None


def list_images(paths: Sequence[str | Path]) -> tuple[list[ListedImage], list[SkippedImage]]:
    """List the images below some paths, in the order given, in a folder in that of their names; each id once.

    Args:
        paths: folders, searched at any depth without what is hidden; files; globs such as ``photos/**/*.jpg``; CSV
            files with a column `path` (from the folder of the CSV) and perhaps `label`. The label of other files is
            the name of their folder.

    Returns:
        The images, and files whose names are no text.

    Raises:
        InputError: a path is not there, a glob matches nothing, a CSV cannot be read, or there is no image at all.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     (Path(folder) / "cat").mkdir()
        ...     (Path(folder) / "cat" / "1.png").touch()
        ...     [image], _ = list_images([folder])
        >>> image.path.name, image.label
        ('1.png', 'cat')
    """
    found: dict[str, ListedImage] = {}
    skipped = []
    for row, image in enumerate(image for path in paths for image in _images_of(str(path))):
        try:
            image.id.encode()
        except UnicodeEncodeError:
            skipped.append(SkippedImage(row, ascii(image.id), "its name is no UTF-8: rename it"))
        else:
            found.setdefault(image.id, image)
    if not found:
        places = ", ".join(map(str, paths)) or "nothing"
        raise InputError(f"there is no image in {places}: give folders, globs or CSV files of {FORMATS} images")
    return list(found.values()), skipped


def _images_of(given: str) -> Iterator[ListedImage]:
    path = Path(given)
    if path.is_dir():
        yield from map(_listed, _files_below(given))
    elif path.suffix.lower() == ".csv":
        yield from _images_of_csv(path)
    elif path.is_file():
        yield _listed(given)
    elif matched := sorted(glob.glob(given, recursive=True)):
        for match in matched:
            if not os.path.isdir(match) and Path(match).suffix.lower() in SUFFIXES:
                yield _listed(match)
    else:
        raise InputError(f"{given} is not there and matches no file: give folders, files, globs or CSV files")


def _files_below(folder: str) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES:
                yield os.path.join(place, name)


def _images_of_csv(csv: Path) -> Iterator[ListedImage]:
    from deephash_pipeline.images.sources.table import read_csv  # noqa: PLC0415 - a service lists no files, and has no pandas

    table = read_csv(csv, {"path"})
    labels = table["label"].str.strip() if "label" in table else [None] * len(table)
    for row, (name, label) in enumerate(zip(table["path"].str.strip(), labels, strict=True), start=2):
        if not name:
            raise InputError(f"{csv}, row {row}: the path is empty; name a file or remove the row")
        listed = _listed(os.path.join(csv.parent, name))
        yield listed if label is None else listed._replace(label=label or None)


def _listed(path: str) -> ListedImage:
    absolute = Path(os.path.abspath(path))
    return ListedImage(path, absolute, absolute.parent.name or None)
