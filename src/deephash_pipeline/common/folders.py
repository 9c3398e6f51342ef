"""Listing of a folder and the folders below it, also where links lead in circles."""

import glob
import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from deephash_pipeline.common.stores import is_remote, local_path, reached

INDEX_FILE, SEGMENTS = "index.sqlite", "segments"
"""A file and a folder that every index has."""

FOREIGN = (
    *("#recycle", "@recycle", "$recycle.bin", "recycler", "recycled", ".trash", ".trash-*", ".trashes", ".dtrash"),
    *("files_trashbin", "files_versions", "lost+found", "system volume information", "found.[0-9][0-9][0-9]"),
    *("#snapshot", "@recently-snapshot", "@eadir", ".@__thumb", "*.lrdata"),
    *(".thumbnails", "thumbnails", "thumbs", "_thumbs", "_thumb", "_preview", "_previews", ".previews"),
)
"""Patterns of names in small letters: folders of NAS systems, desktops and photo programs that hold no originals."""


def is_foreign(name: str) -> bool:
    """Tell whether a folder of this name holds trash, previews or thumbnails of another program.

    Example:
        >>> is_foreign("#recycle"), is_foreign(".Trash-1000"), is_foreign("2019")
        (True, True, False)
    """
    small = name.lower()
    return any(fnmatchcase(small, pattern) for pattern in FOREIGN)


def walk(address: str | Path, foreign: list[str] | None = None) -> Iterator[str]:
    """Yield the names of all files below a folder, without what is hidden: of a folder its files first, by name.

    Linked folders are entered, each folder once, and none above the one that is walked. A folder that cannot be listed,
    or is an index, is yielded itself, and so is a link that leads nowhere. A folder at a time is in memory.

    Args:
        address: folder, a path or a URL.
        foreign: list to which folders that are `is_foreign` are added, which then are not entered; None to enter them.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from deephash_pipeline.common.stores import write_whole
        >>> with TemporaryDirectory() as folder:
        ...     for name in ("b.png", "a/1.png", ".hidden"):
        ...         write_whole(f"{folder}/{name}", b"")
        ...     list(walk(folder))
        ['b.png', 'a/1.png']
    """
    if not is_remote(address):
        yield from _walk(os.fspath(local_path(address)), foreign)
        return
    with reached(address) as (filesystem, path):
        root = path.rstrip("/")
        for place, folders, files in filesystem.walk(root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            below = place[len(root) :].strip("/")
            yield from (f"{below}/{name}" if below else name for name in sorted(files) if name and name[0] != ".")


def _walk(root: str, foreign: list[str] | None) -> Iterator[str]:
    waiting = [""]
    entered = {(status.st_dev, status.st_ino) for status in map(os.stat, Path(os.path.realpath(root)).parents)}
    while waiting:
        below = waiting.pop()
        place = os.path.join(root, below)
        try:
            status = os.stat(place)
            with os.scandir(place) as entries:
                found = sorted((entry.name, _is_folder(entry)) for entry in entries)
        except OSError:
            yield below
            continue
        passed = {name for name, is_folder in found if is_folder and foreign is not None and is_foreign(name)}
        visible = [(name, is_folder) for name, is_folder in found if name[0] != "." and name not in passed]
        if below and holds_index(place):
            yield below
        elif (identity := (status.st_dev, status.st_ino)) not in entered:
            entered.add(identity)
            if foreign is not None:
                foreign += [os.path.join(place, name) for name in sorted(passed)]
            yield from (os.path.join(below, name) for name, is_folder in visible if not is_folder)
            waiting += [os.path.join(below, name) for name, is_folder in reversed(visible) if is_folder]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Tell whether an entry is a folder; a link that cannot be followed is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def matches(pattern: str) -> list[str]:
    """List the files and folders of a disk that match a glob, by name, without what is hidden.

    Two stars are a folder and all that `walk` enters below it.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from deephash_pipeline.common.stores import write_whole
        >>> with TemporaryDirectory() as folder:
        ...     for name in ("b.png", "a/1.png", "a/1.txt"):
        ...         write_whole(f"{folder}/{name}", b"")
        ...     [os.path.relpath(path, folder) for path in matches(f"{folder}/**/*.png")]
        ['a/1.png', 'b.png']
    """
    parts = Path(pattern).parts
    if "**" not in parts:
        return sorted(glob.glob(pattern))
    above, below = parts[: parts.index("**")], parts[parts.index("**") + 1 :]
    found: set[str] = set()
    for top in glob.glob(os.path.join(*above)) if above else ["."]:
        for folder in {os.path.join(top, folder) for name in walk(top) for folder in Path(name).parents}:
            found.update(matches(os.path.join(glob.escape(folder), *(below or "*"))))
    return sorted(os.fspath(Path(path)) for path in found)


def holds_index(folder: str | Path) -> bool:
    """Tell whether a folder is an index, whose pictures are its own."""
    return all(os.path.exists(os.path.join(folder, name)) for name in (INDEX_FILE, SEGMENTS))
