"""State that the routes of the service share: indexes, encoders, limits."""

import asyncio
import logging
import os
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from fastapi import HTTPException
from numpy.typing import NDArray
from PIL import Image

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.extras import required
from deephash_pipeline.common.forks import tell_after_fork
from deephash_pipeline.hamming import ItemId
from deephash_pipeline.hamming.coded import CodedItems
from deephash_pipeline.hamming.conditions import Where as Condition
from deephash_pipeline.hashers import BaseHasher
from deephash_pipeline.hashers.base import EncodedPixels
from deephash_pipeline.images.decoding.apart import Decoders
from deephash_pipeline.photographs import ImageIndex
from deephash_pipeline.service.folders import Folders
from deephash_pipeline.service.observing import Metrics
from deephash_pipeline.service.pictures import Thumbnails, read_picture
from deephash_pipeline.service.pools import Pool, refuse_one_more
from deephash_pipeline.service.schemas import CodesQuestion, Question, Sent, VectorsQuestion, Where
from deephash_pipeline.service.settings import ServiceSettings

if TYPE_CHECKING:
    from deephash_pipeline.service.duplicates import DuplicateSearches

logger = logging.getLogger(__name__)

LEAST_DECODERS, MOST_FETCHES, THREADS = 4, 16, 8
Waiting = tuple[NDArray[np.uint8], Future[EncodedPixels]]


class BatchingEncoder:
    """Encodes what has arrived while it encoded before, so a lone picture does not wait and many share a batch.

    Args:
        hasher: hasher that makes the codes.
        batch_size: greatest number of pictures at a time.

    Example:
        >>> from deephash_pipeline import ImageHasher
        >>> hasher = ImageHasher.pretrained("digits-48")
        >>> encoder = BatchingEncoder(hasher, batch_size=8)
        >>> encoder.submit(np.zeros((1, 28, 28), dtype=np.uint8)).result().codes.shape
        (1, 6)
        >>> encoder.close()
    """

    def __init__(self, hasher: BaseHasher, batch_size: int) -> None:
        self.hasher = hasher
        self.batch_size = batch_size
        self.encoded = self.batches = 0
        self._start()
        tell_after_fork(self)

    def _start(self) -> None:
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="encoding", daemon=True)
        self._is_inherited = False
        self._thread.start()

    def after_fork(self) -> None:
        """Note that the thread is of another process."""
        self._is_inherited = True

    def submit(self, pixels: NDArray[np.uint8]) -> Future[EncodedPixels]:
        """Ask for the packed code of a picture uint8 (C, H, W) of the hasher's size."""
        if self._is_inherited:
            self._start()
        future: Future[EncodedPixels] = Future()
        self._queue.put((pixels, future))
        return future

    def close(self) -> None:
        """End the thread, after what waits."""
        if self._is_inherited:
            return
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        batch: list[Waiting] = []
        for waiting in iter(self._queue.get, None):
            if waiting[1].set_running_or_notify_cancel():
                batch.append(waiting)
            if batch and (len(batch) == self.batch_size or self._queue.empty()):
                self._encode(batch)
                batch = []
        if batch:
            self._encode(batch)

    def _encode(self, batch: list[Waiting]) -> None:
        try:
            [encoded] = self.hasher.encode_batches(np.stack([pixels for pixels, _ in batch]))
        except BaseException as error:
            for _, future in batch:
                future.set_exception(error)
            return
        self.encoded += len(batch)
        self.batches += 1
        for row, (_, future) in enumerate(batch):
            own = slice(row, row + 1)
            features = None if encoded.features is None else encoded.features[own]
            future.set_result(EncodedPixels(encoded.codes[own], features))


class Service:
    """What the routes share.

    Args:
        indexes: indexes by the names they are asked by.
        settings: limits.
        open_again: opens an index whose place another has taken.
    """

    def __init__(
        self,
        indexes: Mapping[str, CodedItems],
        settings: ServiceSettings,
        open_again: Mapping[str, Callable[[], CodedItems]] | None = None,
    ) -> None:
        if not indexes:
            raise InputError("no index is given: name at least one")
        self.indexes, self.settings = dict(indexes), settings
        self.open_again = dict(open_again or {})
        self.metrics = Metrics(self.indexes)
        self.encoders: dict[CodedItems, BatchingEncoder] = {}
        for items in self.indexes.values():
            self._begin(items)
        self._again: list[CodedItems] = []
        self._said = ""
        # An item that gives way takes its picture along: no two requests may see the same one.
        self.changing = threading.Lock()
        self._places: Counter[str] = Counter()
        self.thumbnails = Thumbnails()
        self.folders = Folders()
        self.decoders = Decoders()
        # A kind of work keeps no other waiting, and two pictures that take long no third.
        most = self.settings.most_pending
        self.decoding = Pool(max(LEAST_DECODERS, os.cpu_count() or 1), most)
        self.fetching = Pool(MOST_FETCHES, 0)
        self.searching, self.writing, self.showing, self.watching = (Pool(THREADS, 2 * most) for _ in range(4))

    def named(self, where: Where) -> tuple[str, CodedItems]:
        """The index that is asked, the first by default."""
        name = where.index if where.index is not None else next(iter(self.indexes))
        if name not in self.indexes:
            raise HTTPException(404, f"no index `{name[:100]}`; there are {', '.join(self.indexes)}")
        return name, self.indexes[name]

    def with_item(self, where: Where, text: str) -> tuple[str, CodedItems, ItemId]:
        """The index that is asked, which has the item of an id that is written as a text, and that id."""
        name, items = self.named(where)
        item_id = items.id_of(text)
        if item_id not in items.index:
            raise HTTPException(404, f"no item `{text[:200]}` in {name}")
        return name, items, item_id

    def in_folder(self, name: str, items: CodedItems, folder: str | None) -> Condition | None:
        """The condition that a picture of the index lies in a folder; None where none is named."""
        if folder is None:
            return None
        if items.width:
            raise HTTPException(422, f"folder: it is for pictures, {name} has vectors")
        return self.folders.of(items).condition(folder)

    def check_count(self, question: Question | CodesQuestion | VectorsQuestion) -> None:
        """Refuse a k beyond the limit."""
        if question.k > self.settings.most_results:
            raise HTTPException(422, f"k: at most {self.settings.most_results}")

    @contextmanager
    def admitted(self, kind: Literal["sent", "asked"] = "sent") -> Iterator[None]:
        """Count a request while it is worked on; one too many of those that send a picture or of others is refused."""
        if self._places[kind] >= self.settings.most_pending:
            raise refuse_one_more()
        self._places[kind] += 1
        try:
            with self.metrics.pending.track_inprogress():
                yield
        finally:
            self._places[kind] -= 1

    @property
    def pending(self) -> int:
        """Number of requests that are counted at present."""
        return self._places.total()

    async def encoded(
        self, name: str, items: CodedItems, content: bytes, keep: bool = False
    ) -> tuple[EncodedPixels, Image.Image | None]:
        """The code and features of a picture and, if asked, what the index is to keep of it; decoded by a process."""
        if not isinstance(items, ImageIndex):
            raise HTTPException(422, f"image: {name} has vectors of {items.width} numbers; send a `vector`")
        shape = items.hasher.description.image_shape
        most = self.settings.most_pixels
        pixels, kept = await self.decoding.run(read_picture, self.decoders, content, shape, most, keep)
        encoded = await asyncio.wrap_future(self.encoders[items].submit(pixels))
        self.metrics.encoded.labels(name).inc()
        return encoded, kept

    def vector_of(self, name: str, width: int, sent: Sent) -> NDArray[np.float64]:
        """The vector that is sent in place of a picture to an index of vectors of so many numbers."""
        if sent.image or getattr(sent, "url", None):
            raise HTTPException(422, "vector: give it or a picture, not both")
        if len(sent.vector or ()) != width:
            has = f"vectors of {width} numbers" if width else "pictures; send an image"
            raise HTTPException(422, f"vector: it has {len(sent.vector or ())} numbers, {name} has {has}")
        return np.array(sent.vector)

    @cached_property
    def duplicates(self) -> "DuplicateSearches":
        """Searches for copies, which need more packages than the service does.

        Raises:
            InputError: these are not installed.
        """
        module = required("deephash_pipeline.service.duplicates", "photos,serve")
        searches: DuplicateSearches = module.DuplicateSearches()
        return searches

    def warm_up(self) -> None:
        """Encode and search once, and start to decode: the first time takes seconds."""
        if self.encoders:
            self.decoders.start()
        for items in self.indexes.values():
            items.warm_up()

    def _begin(self, items: CodedItems) -> None:
        if isinstance(items, ImageIndex):
            self.encoders[items] = BatchingEncoder(items.hasher, self.settings.batch_size)

    def follow(self) -> None:
        """Open indexes whose place others have taken; requests that have begun are answered by what was there."""
        for name, open_again in self.open_again.items():
            items, again = self.indexes[name], None
            try:
                if not items.is_replaced:
                    continue
                again = open_again()
                self._begin(again)
                again.warm_up()
            # Whatever it is, the next look tries again.
            except Exception as error:
                if str(error) != self._said:
                    logger.error(f"{name} stays as it was: {error}")
                self._said = str(error)
                if again is not None:
                    self._end(again)
                continue
            self._again.append(again)
            self.indexes[name] = again
            # No request takes longer, and codes are searched in the index that they are of.
            ending = threading.Timer(2 * self.settings.seconds, self._end, [items])
            ending.daemon = True
            ending.start()

    def _end(self, items: CodedItems) -> None:
        if items in self.encoders:
            self.encoders.pop(items).close()
        if items in self._again:
            self._again.remove(items)
        self.folders.forget(items)
        items.close()

    def close(self) -> None:
        """End the threads and processes, and close what was opened here."""
        self.decoders.close()
        for encoder in list(self.encoders.values()):
            encoder.close()
        for items in list(self._again):
            items.close()
