"""Folders that the pictures of an index lie in: listed, and as a condition on a search."""

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from threading import Lock
from typing import Any

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming import HammingIndex, ItemId
from deephash_pipeline.hamming.coded import CodedItems
from deephash_pipeline.hamming.conditions import Where
from deephash_pipeline.service import schemas

AFTER_SLASH = chr(ord("/") + 1)
MOST_FOLDERS = 5000


class FiledPictures:
    """Pictures of an index that are files, in the order of their paths.

    Args:
        places: absolute path of each picture's file, by id.

    Example:
        >>> files = FiledPictures({"a": "/photos/2019/a.jpg", "b": "/photos/2020/trip/b.jpg"})
        >>> files.root, [entry.folder for entry in files.folders()], files.ids_in("2020")
        ('/photos', ['2019', '2020/trip'], ['b'])
        >>> files.condition("2020")
        {'path': {'>=': '/photos/2020/', '<': '/photos/20200'}}
    """

    def __init__(self, places: Mapping[ItemId, str]) -> None:
        order = sorted((path, str(name)) for name, path in places.items())
        self._paths, self._ids = [path for path, _ in order], [name for _, name in order]
        self._counts = Counter(map(os.path.dirname, self._paths))
        self.root = os.path.commonpath(self._counts) if self._counts else ""
        above = {os.path.dirname(name) for name in self._ids}
        # What ids begin with tells a reader nothing.
        self.prefix = os.path.commonpath(above) if above and len({os.path.isabs(name) for name in above}) == 1 else ""

    def folders(self) -> list[schemas.Folder]:
        """The folders that have pictures themselves, by name from the folder that all are in."""
        relative = {os.path.relpath(path, self.root): count for path, count in self._counts.items()}
        named = {"" if name == "." else name: count for name, count in relative.items()}
        return [schemas.Folder(folder=name, pictures=named[name]) for name in sorted(named)[:MOST_FOLDERS]]

    def _beginning(self, folder: str) -> str:
        place = os.path.normpath(os.path.join(self.root, folder))
        if place != self.root and not place.startswith(os.path.join(self.root, "")):
            raise InputError(f"folder: `{folder[:200]}` is none of this index")
        beginning = os.path.join(place, "")
        first = bisect_left(self._paths, beginning)
        if first == len(self._paths) or not self._paths[first].startswith(beginning):
            raise InputError(f"folder: no picture is in `{folder[:200]}`")
        return beginning

    def condition(self, folder: str) -> Where:
        """The condition that a picture lies in a folder, at any depth.

        Raises:
            InputError: none does.
        """
        beginning = self._beginning(folder)
        return {"path": {">=": beginning, "<": beginning[:-1] + AFTER_SLASH}}

    def ids_in(self, folder: str) -> list[str]:
        """Ids of the pictures in a folder, at any depth, by path.

        Raises:
            InputError: there is none.
        """
        beginning = self._beginning(folder)
        return self._ids[bisect_left(self._paths, beginning) : bisect_left(self._paths, beginning[:-1] + AFTER_SLASH)]


class Folders:
    """The filed pictures of indexes; once an index has changed, those that are new are read."""

    def __init__(self) -> None:
        self._known: dict[CodedItems, tuple[Any, FiledPictures]] = {}
        self._lock = Lock()

    def of(self, items: CodedItems) -> FiledPictures:
        """Those of an index; none of vectors, of one in another engine, and of pictures that the index itself keeps."""
        index = items.index
        if items.width or not isinstance(index, HammingIndex) or "path" not in index.columns:
            return FiledPictures({})
        with self._lock:
            about = index.info()
            state = tuple(about[name] for name in ("items", "removed", "segments", "tail"))
            known = self._known.get(items)
            if known is None or known[0] != state:
                places = {name: path for name, path in index.column("path").items() if os.path.isabs(path or "")}
                known = self._known[items] = state, FiledPictures(places)
            return known[1]

    def forget(self, items: CodedItems) -> None:
        """Let go of an index that is served no more."""
        self._known.pop(items, None)
