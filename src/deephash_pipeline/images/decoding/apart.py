"""Decoding in processes of its own, each of which is ended if a picture takes too long or breaks it."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from io import BytesIO
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile

from deephash_pipeline.common.forks import tell_after_fork
from deephash_pipeline.images.decoding import decode
from deephash_pipeline.images.decoding.decode import BrokenImageError, decode_image
from deephash_pipeline.images.decoding.image_files import Channels
from deephash_pipeline.images.decoding.sent import read_sent

SECONDS_FOR_A_PICTURE = 10.0
"""For a picture; 40 megapixels take one to six, by their format."""
SECONDS_TO_START = 60.0
SECONDS_FOR_LARGE = 2.0
ASKS = "a large one"
Decoded = tuple[NDArray[np.uint8], Image.Image | None]


class BusyError(Exception):
    """Another large picture is being decoded, which takes the memory."""


class Decoders:
    """As many processes as there are pictures at a time; each is used again.

    Args:
        seconds: seconds that a picture may take.
        patience: seconds to wait while another large picture is decoded; -1 for as long as that takes.

    Example:
        >>> from io import BytesIO
        >>> buffer = BytesIO()
        >>> Image.new("L", (40, 30)).save(buffer, "PNG")
        >>> pixels, _ = Decoders().read(buffer.getvalue(), (3, 4, 5), 2000)
        >>> pixels.shape
        (3, 4, 5)
    """

    def __init__(self, seconds: float = SECONDS_FOR_A_PICTURE, patience: float = SECONDS_FOR_LARGE) -> None:
        self.seconds, self.patience = seconds, patience
        self._idle: list[_Process] = []
        self.close = finalize(self, _end, self._idle)
        """End the processes."""
        tell_after_fork(self)

    def start(self) -> None:
        """Start a process that is then there for the first picture: it imports for a second."""
        self._idle.append(_Process())

    def after_fork(self) -> None:
        """Leave the processes to the process that has started them."""
        self._idle.clear()

    def read(
        self, content: bytes, image_shape: tuple[Channels, int, int], most_pixels: int, keep: bool = False
    ) -> Decoded:
        """See `read_sent`.

        Raises:
            BrokenImageError: also if it takes too long, or more than the process stands.
            BusyError: it is large, and so is another that is decoded.
        """
        decoded: Decoded = self._call(read_sent, content, image_shape, most_pixels, keep)
        return decoded

    def decode(
        self, image: str | Path | BytesIO, image_size: int | tuple[int, int] | None, channels: Channels
    ) -> NDArray[np.uint8]:
        """See `decode_image`.

        Raises:
            BrokenImageError: also if it takes too long, or more than the process stands.
            BusyError: it is large, and so is another that is decoded.
        """
        pixels: NDArray[np.uint8] = self._call(decode_image, image, image_size, channels)
        return pixels

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of a picture in a process."""
        process = self._taken()
        try:
            answer = process.ask((function, arguments, _settings()), self.seconds, self.patience)
        except BaseException as error:
            process.end()
            if isinstance(error, TimeoutError):
                raise BrokenImageError(f"not decoded within {self.seconds:g} seconds; save it anew") from error
            if isinstance(error, EOFError | OSError):
                raise BrokenImageError("decoding it has broken off; save it anew") from error
            raise
        self._idle.append(process)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _taken(self) -> "_Process":
        while True:
            try:
                process = self._idle.pop()
            except IndexError:
                return _Process()
            # Where memory is short the system ends those that do nothing, too.
            if process.process.poll() is None:
                return process
            process.end()


def _settings() -> tuple[int | None, bool]:
    """What a user may have set of Pillow, which is to hold in the process too."""
    return Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES


def _end(processes: "list[_Process]") -> None:
    while processes:
        processes.pop().end()


class _Process:
    def __init__(self) -> None:
        self.connection, theirs = Pipe()
        # The modules that this process has, wherever they are from, and none of the folder that it works in.
        paths = os.pathsep.join(map(os.path.abspath, sys.path))
        program = f"from {__name__} import work; work({theirs.fileno()})"
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", program],
            pass_fds=[theirs.fileno()],
            env=os.environ | {"PYTHONPATH": paths},
            stdin=subprocess.DEVNULL,
            # Ctrl-C is for the process that was started from the terminal.
            start_new_session=True,
        )
        theirs.close()
        self.is_ready = False

    def ask(self, question: Any, seconds: float, patience: float) -> Any:
        if not self.is_ready:
            self._received(SECONDS_TO_START)
            self.is_ready = True
        self.connection.send(question)
        answer = self._received(seconds)
        if not _asks(answer):
            return answer
        # The lock of this process, for it may be decoding too.
        if not decode.ONE_LARGE_IMAGE.acquire(timeout=patience):
            raise BusyError
        until = time.monotonic() + seconds
        try:
            while _asks(answer):
                self.connection.send(True)
                answer = self._received(until - time.monotonic())
            return answer
        finally:
            decode.ONE_LARGE_IMAGE.release()

    def _received(self, seconds: float) -> Any:
        if not self.connection.poll(max(0.0, seconds)):
            raise TimeoutError
        return self.connection.recv()

    def end(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.wait()


def _asks(answer: Any) -> bool:
    return isinstance(answer, str) and answer == ASKS


class _Asked:
    """In the place of a lock: asks the process that has started this one, which lets one at a time."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def __enter__(self) -> None:
        self.connection.send(ASKS)
        self.connection.recv()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing: it is given back with the answer."""


def work(descriptor: int) -> None:
    """Decode what comes over a connection, until its other end is closed."""
    connection = Connection(descriptor)
    decode.ONE_LARGE_IMAGE = _Asked(connection)  # type: ignore[assignment]
    try:
        connection.send("ready")
        while True:
            function, arguments, settings = connection.recv()
            Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = settings
            try:
                answer = function(*arguments)
            except Exception as error:
                answer = error.with_traceback(None)
                answer.__cause__ = answer.__context__ = None
            connection.send(answer)
    except (EOFError, OSError):
        return
