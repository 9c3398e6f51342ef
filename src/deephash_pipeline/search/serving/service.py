"""What the routes of the service share: indexes, encoders, limits."""

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
from anyio import CapacityLimiter, to_thread
from fastapi import HTTPException
from PIL import Image

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashers.base import EncodedPixels
from deephash_pipeline.search.images import ImageIndex
from deephash_pipeline.search.serving.encoding import BatchingEncoder
from deephash_pipeline.search.serving.observing import Metrics
from deephash_pipeline.search.serving.pictures import read_picture
from deephash_pipeline.search.serving.schemas import CodesQuestion, Question, Where
from deephash_pipeline.search.serving.settings import ServiceSettings


class Service:
    """What the routes share.

    Args:
        indexes: by the names they are asked by.
        settings: limits.
    """

    def __init__(self, indexes: Mapping[str, ImageIndex], settings: ServiceSettings) -> None:
        if not indexes:
            raise InputError("no index is given: name at least one")
        self.indexes, self.settings = dict(indexes), settings
        self.metrics = Metrics(indexes)
        self.encoders = {
            name: BatchingEncoder(images.hasher, settings.batch_size) for name, images in self.indexes.items()
        }
        self.pending = 0
        self.decoding = CapacityLimiter(os.cpu_count() or 1)

    def named(self, where: Where) -> tuple[str, ImageIndex]:
        """The index that is asked, the first by default."""
        name = where.index if where.index is not None else next(iter(self.indexes))
        if name not in self.indexes:
            raise HTTPException(404, f"no index `{name[:100]}`; there are {', '.join(self.indexes)}")
        return name, self.indexes[name]

    def with_item(self, where: Where, item_id: str) -> tuple[str, ImageIndex]:
        """The index that is asked, which has this item."""
        name, images = self.named(where)
        if item_id not in images.index:
            raise HTTPException(404, f"no item `{item_id[:200]}` in {name}")
        return name, images

    def check_count(self, question: Question | CodesQuestion) -> None:
        """Refuse a k beyond the limit."""
        if question.k > self.settings.most_results:
            raise HTTPException(422, f"k: at most {self.settings.most_results}")

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Count a request while it is worked on; one too many is refused."""
        if self.pending >= self.settings.most_pending:
            raise HTTPException(429, "too many requests at once; ask again in a second", {"Retry-After": "1"})
        self.pending += 1
        self.metrics.pending.set(self.pending)
        try:
            yield
        finally:
            self.pending -= 1
            self.metrics.pending.set(self.pending)

    async def encoded(self, name: str, content: bytes, keep: bool = False) -> tuple[EncodedPixels, Image.Image | None]:
        """The code and features of a picture and, if asked, what the index is to keep of it, by other threads."""
        shape = self.indexes[name].hasher.description.image_shape
        arguments = (content, shape, self.settings.most_pixels, keep)
        # A large picture takes a hundred megabytes while it is decoded.
        read = await to_thread.run_sync(read_picture, *arguments, limiter=self.decoding)
        encoded = await asyncio.wrap_future(self.encoders[name].submit(read.pixels))
        self.metrics.encoded.labels(name).inc()
        return encoded, read.kept

    def warm_up(self) -> None:
        """Encode and search once: the first time takes seconds."""
        for name, images in self.indexes.items():
            black = np.zeros(images.hasher.description.image_shape, dtype=np.uint8)
            images.index.search(self.encoders[name].submit(black).result().codes, 1)

    def close(self) -> None:
        """End the threads."""
        for encoder in self.encoders.values():
            encoder.close()
