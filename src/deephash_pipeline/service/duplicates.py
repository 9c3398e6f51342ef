"""Copies among the pictures of an index, looked for when asked and shown on a page."""

import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from fastapi import HTTPException

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.progress import hearing
from deephash_pipeline.deephash import FeatureExtractor
from deephash_pipeline.photographs import ImageIndex
from deephash_pipeline.photographs.duplicates.finding import Duplicates, find_duplicates
from deephash_pipeline.photographs.duplicates.levels import Level
from deephash_pipeline.photographs.duplicates.page import LONGER_SIDE, render_page
from deephash_pipeline.photographs.listing import ListedImage
from deephash_pipeline.service.answering import thumbnail_address

logger = logging.getLogger(__name__)

AT_A_TIME = 1000


class Search:
    """A search that runs or has ended, and how far it is."""

    def __init__(self, images: ImageIndex, level: Level) -> None:
        self.found: Future[Duplicates] = Future()
        self.said = ""
        threading.Thread(target=self._work, args=(images, level), name="duplicates", daemon=True).start()

    def _work(self, images: ImageIndex, level: Level) -> None:
        try:
            network = partial(FeatureExtractor.pretrained, device="cpu")
            with hearing(self._hear):
                self.found.set_result(find_duplicates(listed(images), network, level, index=images))
        except BaseException as error:
            logger.error(" ".join(f"looking for copies has failed: {error}".split()))
            self.found.set_exception(error)

    def _hear(self, description: str, where: str) -> None:
        self.said = f"{description}: {where}"

    @property
    def failure(self) -> str:
        """Why it has failed, in a line; empty if it has not."""
        error = self.found.exception() if self.found.done() else None
        if error is None or isinstance(error, InputError):
            return " ".join(str(error or "").split())
        return f"it has failed ({type(error).__name__}); the log has the details"


class DuplicateSearches:
    """What was found in served indexes; one search at a time, since each takes all cores for minutes."""

    def __init__(self) -> None:
        self._searches: dict[tuple[str, Level], Search] = {}
        self._starting = threading.Lock()

    def start(self, name: str, images: ImageIndex, level: Level) -> bool:
        """Look anew, unless that is being done; tell whether a search was started.

        Raises:
            HTTPException: 429, another search is at work.
        """
        with self._starting:
            working = [key for key, search in self._searches.items() if not search.found.done()]
            if working == [(name, level)]:
                return False
            if working:
                [(other, of_level)] = working
                said = f"copies are being looked for in {other} ({of_level}); ask again when that is done"
                raise HTTPException(429, said, {"Retry-After": "10"})
            self._searches[name, level] = Search(images, level)
            return True

    def progress(self, name: str, level: Level) -> dict[str, Any]:
        """How far a search is."""
        search = self._searches.get((name, level))
        return {"working": search is not None and not search.found.done(), "said": search.said if search else ""}

    def page(self, name: str, images: ImageIndex, level: Level, needs_token: bool) -> str:
        """The page of an index: groups, how far the search is, or how to start it.

        Args:
            name: name of the index.
            images: the index.
            level: name of the share of a picture that may have changed.
            needs_token: True if who starts a search must send the token.
        """
        search = self._searches.get((name, level))
        failure = search.failure if search else ""
        done = search is not None and search.found.done() and not failure
        about: Mapping[str, Any] = {
            "index": name,
            "level": level,
            "pictures": len(images),
            "needs_token": needs_token,
            "failure": failure,
            "working": search is not None and not search.found.done(),
            "said": search.said if search else "",
        }
        return render_page(
            search.found.result() if search is not None and done else None,
            f"Duplicates in {name}",
            lambda photo: thumbnail_address(name, photo.name, LONGER_SIDE).removeprefix("/"),
            lambda photo: photo.name,
            about,
        )


def listed(images: ImageIndex) -> list[ListedImage]:
    """The pictures of an index that are files, by their ids."""
    found = [
        (item.id, images.path_of(item.metadata)) for _, some, _ in images._own().batches(AT_A_TIME) for item in some
    ]
    return [ListedImage(str(item_id), path.resolve(), None) for item_id, path in found if path is not None]
