"""SIGTERM and Ctrl-C: training stops behind the current step, and what it has learned is kept."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from deephash_pipeline.errors import InputError


class TrainingInterrupted(InputError):
    """Somebody asked training to stop, and it has, behind a whole step.

    Attributes:
        exit_code: what a shell expects of a command that a signal has ended, 128 + the signal's number.
    """

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message, signal_number)
        self.exit_code = 128 + signal_number

    def __str__(self) -> str:
        return str(self.args[0])


class StopRequest:
    """Whether a signal has asked to stop, and which; a second one ends the process at once."""

    def __init__(self) -> None:
        self.signal_number: int | None = None

    def __bool__(self) -> bool:
        return self.signal_number is not None

    def note(self, signal_number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        self.signal_number = signal_number
        signal.signal(signal_number, signal.SIG_DFL)


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Listen for SIGTERM and SIGINT inside the block; outside the main thread, where Python cannot, for nothing."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    former = {number: signal.signal(number, request.note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield request
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
