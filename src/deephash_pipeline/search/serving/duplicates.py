"""Copies among the pictures of an index, looked for once and shown on a page."""

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

from deephash_pipeline.deephash import FeatureExtractor
from deephash_pipeline.search.duplicates import Duplicates, Photo, find_duplicates
from deephash_pipeline.search.duplicates.finding import Level
from deephash_pipeline.search.duplicates.page import LONGER_SIDE, render_page
from deephash_pipeline.search.images import ImageIndex
from deephash_pipeline.search.images.listing import ListedImage

AT_A_TIME = 1000


class Search(NamedTuple):
    """A search that runs or has ended."""

    pictures: int
    found: Future[Duplicates]


class DuplicateSearches:
    """What was found in served indexes; one search at a time, since each takes all cores for minutes."""

    def __init__(self) -> None:
        self._searches: dict[tuple[str, Level], Search] = {}
        self._starting, self._working = threading.Lock(), threading.Lock()

    def page(self, name: str, images: ImageIndex, level: Level, again: bool) -> str:
        """The page of an index: groups, or that they are looked for.

        Args:
            name: of the index.
            images: the index.
            level: how much of a picture may have changed.
            again: look anew, unless a search is at work.

        Raises:
            InputError: the network is not installed.
        """
        with self._starting:
            search = self._searches.get((name, level))
            if search is None or (again and search.found.done()):
                search = self._searches[name, level] = self._started(images, level)
            elif search.found.done() and search.found.exception():
                # It is told once; whoever asks again has it tried again.
                del self._searches[name, level]

        def thumbnail(photo: Photo) -> str:
            where = urlencode({"index": name, "size": LONGER_SIDE})
            return f"/v1/items/{quote(photo.name, safe='')}/thumbnail?{where}"

        return render_page(
            search.found.result() if search.found.done() else None,
            f"Duplicates in {name}",
            thumbnail,
            lambda photo: photo.name,
            {"index": name, "level": level, "pictures": search.pictures},
        )

    def _started(self, images: ImageIndex, level: Level) -> Search:
        files = listed(images)
        future: Future[Duplicates] = Future()

        def work() -> None:
            with self._working:
                try:
                    future.set_result(find_duplicates(files, lambda: FeatureExtractor.pretrained(device="cpu"), level))
                except BaseException as error:
                    future.set_exception(error)

        threading.Thread(target=work, name="duplicates", daemon=True).start()
        return Search(len(files), future)


def listed(images: ImageIndex) -> list[ListedImage]:
    """The pictures of an index that are files, by their ids."""
    ids, found = list(images), []
    for first in range(0, len(ids), AT_A_TIME):
        # Some may have been removed since.
        there = [item_id for item_id in ids[first : first + AT_A_TIME] if item_id in images.index]
        for item in images.index.items(there):
            path = images.path_of(item.metadata)
            if path is not None:
                found.append(ListedImage(str(item.id), Path(path).resolve(), None))
    return found
