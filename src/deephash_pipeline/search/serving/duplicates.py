"""Copies among the pictures of an index, looked for once and shown on a page."""

import threading
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

from deephash_pipeline.deephash import FeatureExtractor
from deephash_pipeline.search.duplicates.finding import Duplicates, find_duplicates
from deephash_pipeline.search.duplicates.levels import Level
from deephash_pipeline.search.duplicates.page import LONGER_SIDE, render_page
from deephash_pipeline.search.images import ImageIndex
from deephash_pipeline.search.images.listing import ListedImage
from deephash_pipeline.search.serving.answering import thumbnail_address

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

    def forget(self, name: str, level: Level) -> None:
        """Have the next page look anew, unless a search is at work."""
        with self._starting:
            search = self._searches.get((name, level))
            if search is not None and search.found.done():
                del self._searches[name, level]

    def page(self, name: str, images: ImageIndex, level: Level) -> str:
        """The page of an index: groups, or that they are looked for.

        Args:
            name: name of the index.
            images: the index.
            level: name of the share of a picture that may have changed.

        Raises:
            InputError: the network is not installed.
        """
        with self._starting:
            search = self._searches.get((name, level))
            if search is None:
                search = self._searches[name, level] = self._started(images, level)
            elif search.found.done() and search.found.exception():
                # It is told once; whoever asks again has it tried again.
                del self._searches[name, level]
        return render_page(
            search.found.result() if search.found.done() else None,
            f"Duplicates in {name}",
            lambda photo: thumbnail_address(name, photo.name, LONGER_SIDE),
            lambda photo: photo.name,
            {"index": name, "level": level, "pictures": search.pictures},
        )

    def _started(self, images: ImageIndex, level: Level) -> Search:
        files = listed(images)
        future: Future[Duplicates] = Future()

        def work() -> None:
            with self._working:
                try:
                    network = partial(FeatureExtractor.pretrained, device="cpu")
                    future.set_result(find_duplicates(files, network, level, index=images))
                except BaseException as error:
                    future.set_exception(error)

        threading.Thread(target=work, name="duplicates", daemon=True).start()
        return Search(len(files), future)


def listed(images: ImageIndex) -> list[ListedImage]:
    """The pictures of an index that are files, by their ids."""
    found = [
        (item.id, images.path_of(item.metadata)) for _, some, _ in images._own().batches(AT_A_TIME) for item in some
    ]
    return [ListedImage(str(item_id), path.resolve(), None) for item_id, path in found if path is not None]
