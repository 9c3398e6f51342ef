"""Folders, globs, files and CSVs, as a user names them -> the images there are."""

import glob
import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, takewhile
from pathlib import Path
from typing import NamedTuple

from PIL import Image, UnidentifiedImageError

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.folders import holds_index, is_foreign, matches, walk
from deephash_pipeline.images.batches import SkippedImage
from deephash_pipeline.images.decoding.formats import (
    FORMAT_NAMES,
    FORMATS,
    HEIC_REMEDY,
    check_readable,
    is_image,
    lacks_reader,
    only_images,
)

logger = logging.getLogger(__name__)


class ListedImage(NamedTuple):
    """An image to be added to an index.

    Attributes:
        id: id under which it is found; of a listed file its path as it was given, without ``./``.
        path: path of the file; of a listed one without links, which tells files apart.
        label: name of its class; None for none.
        stamp: size and time of change of the file whose code is in an index.
        digest: digest of the file's content; None where it is not known.
        labelled: True if a CSV gives the label, which then takes the place of another.

    Example:
        >>> ListedImage("cat/1.png", Path("cat/1.png"), "cat").label
        'cat'
    """

    id: str
    path: Path
    label: str | None
    stamp: str | None = None
    digest: str | None = None
    labelled: bool = False


def list_images(paths: Sequence[str | Path], empty: bool = False) -> tuple[list[ListedImage], list[SkippedImage]]:
    """List the images below some paths, in the order given, in a folder in that of their names; each file once.

    Whatever its suffix, a file is an image if its content is. A file that has several names, by links or spellings,
    has the first of them.

    Args:
        paths: folders, searched at any depth without what is hidden, without indexes, and without folders that hold
            trash, previews or thumbnails of other programs, which are named in a line of the log; files; globs of files
            and folders such as ``photos/**/*.jpg``; CSV files with a column `path` (from the folder of the CSV) and
            perhaps `label`. The label of other files is the name of their folder.
        empty: True if folders may have no image, as those of an index may that follows them.

    Returns:
        The images, and files whose names are no text. What cannot be read is among the images.

    Raises:
        InputError: a path is not there, a glob matches nothing, a CSV cannot be read, a file has two labels, or there
            is no image at all.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     (Path(folder) / "cat").mkdir()
        ...     (Path(folder) / "cat" / "1.png").touch()
        ...     [image], _ = list_images([folder])
        >>> image.path.name, image.label
        ('1.png', 'cat')
    """
    found: dict[Path, ListedImage] = {}
    skipped = []
    foreign: list[str] = []
    for row, image in enumerate(image for path in paths for image in _images_of(str(path), foreign)):
        try:
            f"{image.id}{image.path}{image.label}".encode()
        except UnicodeEncodeError:
            skipped.append(SkippedImage(row, ascii(image.id)[1:-1], "its name, folder or label is no UTF-8: rename it"))
            continue
        before = found.setdefault(image.path, image)
        if before.id == image.id and before.label != image.label:
            raise InputError(f"{image.id} is given with the labels {before.label} and {image.label}: give it one")
    _name_foreign(foreign)
    if not found and (skipped or not (empty and searched_folders(paths))):
        places = ", ".join(map(str, paths)) or "nothing"
        reason = f" that can be read (left out: {skipped[0].name}: {skipped[0].reason})" if skipped else ""
        raise InputError(f"there is no image in {ascii(places)[1:-1]}{reason}: give folders, globs or CSVs of images")
    return list(found.values()), skipped


def reason_unreadable(path: Path) -> str | None:
    """Say why a file is no picture, by its beginning; None if it is one."""
    try:
        check_readable(path)
        with Image.open(path, formats=FORMATS):
            return None
    except UnidentifiedImageError:
        return f"cannot identify image file as {FORMAT_NAMES}" + (f"; {HEIC_REMEDY}" if lacks_reader(path) else "")
    except Exception as error:  # a damaged file can make Pillow's readers raise anything
        return " ".join(str(error).split()) or type(error).__name__


def require_picture(path: Path) -> None:
    """Refuse a file that is no picture, before anything is loaded that would decode it.

    Raises:
        InputError: it is none.
    """
    if reason := reason_unreadable(path):
        raise InputError(f"{path} cannot be decoded ({reason}): mend it, or name another")


def searched_folders(paths: Sequence[str | Path]) -> list[Path]:
    """Give the folders that paths name, those of globs as far as they have no star; files and CSVs name none.

    Example:
        >>> searched_folders(["/", "/photos/2019/**/*.jpg"])
        [PosixPath('/'), PosixPath('/photos/2019')]
    """
    folders = []
    for given in map(str, paths):
        if os.path.isdir(given):
            folders.append(Path(given))
        elif not os.path.exists(given):
            parts = Path(given).parts
            folders.append(Path(*takewhile(lambda part: not glob.has_magic(part), parts)))
    return folders


def _name_foreign(folders: Sequence[str]) -> None:
    if folders:
        kinds = Counter(os.path.basename(folder) for folder in dict.fromkeys(folders))
        counts = ascii(", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))[1:-1]
        message = "folders of trash, previews and thumbnails that are passed over: %d (%s), such as %s"
        logger.warning(message, kinds.total(), counts, ascii(folders[0])[1:-1])


def _images_of(given: str, foreign: list[str]) -> Iterator[ListedImage]:
    path = Path(given)
    if path.suffix.lower() == ".csv" and path.is_file():
        yield from _images_of_csv(path)
    elif path.is_dir():
        if holds_index(given) or _in_index(given):
            raise InputError(f"{given} is an index or in one, whose pictures are its own: give folders of images")
        yield from map(_listed, only_images(_files_below(given, foreign)))
    elif path.exists():
        yield _listed(given)
    elif matched := matches(given):
        inside = {match: _foreign_part(match, given) for match in matched}
        foreign += dict.fromkeys(folder for folder in inside.values() if folder is not None)
        own = [match for match, folder in inside.items() if folder is None]
        files = chain.from_iterable(_files_below(match, foreign) if os.path.isdir(match) else [match] for match in own)
        # A glob of two stars has files and the folders that they are in.
        yield from map(_listed, only_images(dict.fromkeys(files), lambda name: is_image(name) and not _in_index(name)))
    else:
        raise InputError(f"{given} is not there and matches no file: give folders, files, globs or CSV files")


def _files_below(folder: str, foreign: list[str]) -> Iterator[str]:
    return (os.path.join(folder, name) for name in walk(folder, foreign))


def _foreign_part(match: str, pattern: str) -> str | None:
    """The folder of another program that a match of a glob is in or is, unless the glob names it."""
    named = Path(pattern).parts
    for depth, part in enumerate(Path(match).parts):
        if (
            is_foreign(part)
            and part not in named
            and os.path.isdir(folder := os.path.join(*Path(match).parts[: depth + 1]))
        ):
            return folder
    return None


def _in_index(path: str) -> bool:
    return any(map(holds_index, Path(os.path.abspath(path)).parents))


def _images_of_csv(csv: Path) -> Iterator[ListedImage]:
    from deephash_pipeline.images.sources.table import read_listing  # noqa: PLC0415 - a service lists no files, and has no pandas

    table = read_listing(csv, set())
    labels = table["label"] if "label" in table else [None] * len(table)
    for name, label in zip(table["path"], labels, strict=True):
        listed = _listed(os.path.join(csv.parent, name))
        yield listed if label is None else listed._replace(label=label or None, labelled=True)


def _listed(path: str) -> ListedImage:
    label = os.path.basename(os.path.dirname(os.path.abspath(path)))
    name, place = os.path.normpath(path), os.path.realpath(path)
    # ``link/..`` is the folder above the one that the link leads to, which no shorter name says.
    if os.pardir in path.split(os.sep) and os.path.realpath(name) != place:
        name = path
    return ListedImage(name, Path(place), label or None)
