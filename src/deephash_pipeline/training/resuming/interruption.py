"""SIGTERM and Ctrl-C: training stops after the current step, and what it has learned is stored."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from types import FrameType

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.training.ranks import world_size


class TrainingInterrupted(InputError):
    """Somebody asked training to stop, and it has, after a whole step.

    Attributes:
        exit_code: number that a shell expects of a command that a signal has ended, 128 + the signal's number.

    Example:
        >>> TrainingInterrupted("interrupted in epoch 1", signal.SIGTERM).exit_code
        143
    """

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message, signal_number)
        self.exit_code = 128 + signal_number

    def __str__(self) -> str:
        return str(self.args[0])


class NoFurtherEpoch(Exception):
    """What a run's `after_epoch` may raise to end a training in order."""


class StopRequest:
    """Whether a signal has asked to stop, and which came first; a second of its kind ends the process at once.

    Example:
        >>> bool(StopRequest())
        False
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None

    def __bool__(self) -> bool:
        return self.signal_number is not None

    def note(self, signal_number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.signal_number is None:
            self.signal_number = signal_number
        # One of several processes may get it twice, by the terminal and by the process that has started it.
        if world_size() == 1 and parent_process() is None:
            signal.signal(signal_number, signal.SIG_DFL)


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Listen for SIGTERM and SIGINT inside the block; outside the main thread, where Python cannot, for nothing.

    Raises:
        TrainingInterrupted: asked to stop, the block has come to its end, because nothing was left to do.

    Example:
        >>> with stop_requests() as stop:
        ...     bool(stop)
        False
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    # What the parent has chosen to ignore, as a shell does for a command in the background, stays ignored.
    heard = [number for number in (signal.SIGTERM, signal.SIGINT) if signal.getsignal(number) != signal.SIG_IGN]
    former = {number: signal.signal(number, request.note) for number in heard}
    try:
        yield request
    except NoFurtherEpoch:
        if request.signal_number is None:
            raise
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    if request.signal_number is not None:
        raise TrainingInterrupted(
            "interrupted when a training had just come to its end: the same command goes on from its last checkpoint",
            request.signal_number,
        )
