"""Copies among the pictures of an index, looked for when asked and shown on a page."""

import logging
import os
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from fastapi import HTTPException

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.progress import duration, hearing
from deephash_pipeline.photographs import ImageIndex
from deephash_pipeline.photographs.duplicates.finding import Duplicates, find_duplicates
from deephash_pipeline.photographs.duplicates.groups import Photo
from deephash_pipeline.photographs.duplicates.levels import Level
from deephash_pipeline.photographs.duplicates.network import Network
from deephash_pipeline.photographs.duplicates.page import THUMBNAIL_SIDE, Shown, render_page
from deephash_pipeline.photographs.listing import ListedImage
from deephash_pipeline.service.answering import thumbnail_address
from deephash_pipeline.service.settings import ServiceSettings

logger = logging.getLogger(__name__)

SENT_AT_A_TIME = 1000
LARGE = 2048
MOST_SHOWN = 60
"""Groups that are shown before the search has ended, the latest."""
SHARES = {"files": 0.04, "pictures": 0.3, "comparisons": 0.5, "groups": 0.16}
"""Of the time, for photographs whose features an index keeps."""
SHOWN_STEPS = {"files": "reading sizes and dates", "pictures": "reading pictures", "groups": "choosing what to keep"}
SECONDS_A_PICTURE = 0.03
"""Of a processor; pairs of all of them are compared by their fingerprints, which takes little of it."""


def usual_seconds(pictures: int) -> float:
    """Seconds that a search among so many pictures takes about."""
    return 10 + pictures * SECONDS_A_PICTURE / min(2, os.cpu_count() or 1)


def small(name: str, item_id: str, size: int = THUMBNAIL_SIDE) -> str:
    """Where a small picture is, below the address of the page."""
    return thumbnail_address(name, item_id, size).removeprefix("/")


class Search:
    """A search that runs or has ended, how far it is, and what it has found so far."""

    def __init__(self, name: str, images: ImageIndex, level: Level) -> None:
        self.found: Future[Duplicates] = Future()
        self.said, self.copies = "", 0
        self._name, self._pictures, self._step, self._part = name, len(images), next(iter(SHARES)), 0.0
        self._step_began = time.monotonic()
        self._group_of: dict[str, list[str]] = {}
        self._groups: list[list[str]] = []
        threading.Thread(target=self._work, args=(images, level), name="duplicates", daemon=True).start()

    def _work(self, images: ImageIndex, level: Level) -> None:
        try:
            with hearing(self._hear):
                found = find_duplicates(listed(images), Network("cpu"), level, index=images, told=self._found)
                self.found.set_result(found)
        except BaseException as error:
            logger.error(" ".join(f"looking for copies has failed: {error}".split()))
            self.found.set_exception(error)

    def _hear(self, description: str, where: str) -> None:
        self.said = f"{SHOWN_STEPS.get(description, description)}: {where}"
        done, _, total = where.partition(" of ")
        if description in SHARES and done.isdigit() and total.isdigit():
            if description != self._step:
                self._step, self._step_began = description, time.monotonic()
            self._part = int(done) / max(1, int(total))

    def _found(self, one: Photo, other: Photo) -> None:
        known = [self._group_of.get(photo.name, [photo.name]) for photo in (one, other)]
        if known[0] is not known[1]:
            joined = [*known[0], *known[1]]
            self._groups = [group for group in self._groups if group is not known[0] and group is not known[1]]
            self._groups.append(joined)
            self._group_of.update(dict.fromkeys(joined, joined))
            self.copies += 1

    def progress(self) -> dict[str, Any]:
        """How much is done, what is being done, about how long the rest takes, and the groups so far."""
        elapsed, expected = time.monotonic() - self._step_began, usual_seconds(self._pictures)
        shares, place = list(SHARES.values()), list(SHARES).index(self._step)
        of_step = (
            max(1, expected * shares[place] - elapsed) if not self._part else elapsed / self._part * (1 - self._part)
        )
        left = of_step + expected * sum(shares[place + 1 :])
        done = sum(shares[:place]) + shares[place] * self._part
        latest = self._groups[: -MOST_SHOWN - 1 : -1]
        return {
            "working": not self.found.done(),
            "said": self.said,
            "percent": min(99, round(100 * done)),
            "left": duration(left),
            "copies": self.copies,
            "groups": [[{"name": name, "thumbnail": small(self._name, name)} for name in group] for group in latest],
        }

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
            self._searches[name, level] = Search(name, images, level)
            return True

    def progress(self, name: str, level: Level) -> dict[str, Any]:
        """How far a search is, see `Search.progress`."""
        search = self._searches.get((name, level))
        return {"working": False} if search is None else search.progress()

    def page(self, name: str, images: ImageIndex, level: Level, settings: ServiceSettings) -> str:
        """The page of an index: groups, how far the search is, or how to start it.

        Args:
            name: name of the index.
            images: the index.
            level: name of the share of a picture that may have changed.
            settings: whether who starts a search must send a token, and whether paths are told.
        """
        search = self._searches.get((name, level))
        failure = search.failure if search else ""
        done = search is not None and search.found.done() and not failure
        about: Mapping[str, Any] = {
            "index": name,
            "level": level,
            "pictures": len(images),
            "takes": duration(usual_seconds(len(images))),
            "needs_token": settings.token is not None,
            "failure": failure,
            "working": search is not None and not search.found.done(),
            "said": search.said if search else "",
        }
        return render_page(
            search.found.result() if search is not None and done else None,
            f"Duplicates in {name}",
            Shown(
                lambda photo: small(name, photo.name),
                lambda photo: small(name, photo.name, LARGE),
                lambda photo: str(photo.path) if settings.tells_paths else photo.name,
            ),
            about,
        )


def listed(images: ImageIndex) -> list[ListedImage]:
    """The pictures of an index that are files, by their ids."""
    found = [
        (item.id, images.path_of(item.metadata))
        for _, some, _ in images._own().batches(SENT_AT_A_TIME)
        for item in some
    ]
    return [ListedImage(str(item_id), path.resolve(), None) for item_id, path in found if path is not None]
