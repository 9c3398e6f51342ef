"""Pictures that arrive one by one -> codes, encoded together in a thread of their own."""

import queue
import threading
from concurrent.futures import Future

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hashers import BaseHasher
from deephash_pipeline.hashers.base import EncodedPixels

Waiting = tuple[NDArray[np.uint8], Future[EncodedPixels]]


class BatchingEncoder:
    """Encodes what has arrived while it encoded before, so a lone picture does not wait and many share a batch.

    Args:
        hasher: makes the codes.
        batch_size: most pictures at a time.

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
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="encoding", daemon=True)
        self._thread.start()

    def submit(self, pixels: NDArray[np.uint8]) -> Future[EncodedPixels]:
        """Ask for the packed code of a picture uint8 (C, H, W) of the hasher's size."""
        future: Future[EncodedPixels] = Future()
        self._queue.put((pixels, future))
        return future

    def close(self) -> None:
        """End the thread, after what waits."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        ended = False
        while not ended:
            batch = []
            waiting = self._queue.get()
            while waiting is not None:
                if waiting[1].set_running_or_notify_cancel():
                    batch.append(waiting)
                if len(batch) == self.batch_size or self._queue.empty():
                    break
                waiting = self._queue.get()
            ended = waiting is None
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
