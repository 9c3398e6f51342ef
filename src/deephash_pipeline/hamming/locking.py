"""One writer at a time: a lock that the system takes back when the process ends, however it ends."""

import fcntl
import os
from pathlib import Path

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.forks import tell_after_fork
from deephash_pipeline.common.writing import cannot_write

LOCK = "writer.lock"
COPY = "; a copy of the index elsewhere can be used"


class WriterLock:
    """The right to change an index; a process that is forked from the one that has it has none.

    Args:
        folder: directory of the index.

    Raises:
        InputError: if another process, or another object of this one, has it, or the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._descriptor: int | None = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise cannot_write(folder, error, COPY) from error
        tell_after_fork(self)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            writer = os.pread(self._descriptor, 20, 0).decode(errors="replace").strip()
            self.after_fork()
            raise InputError(
                f"{folder} is being written by process {writer or 'unknown'}: wait until that is done; "
                "in Python, read_only=True opens it meanwhile"
            ) from None
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)
        except OSError as error:
            self.release()
            raise cannot_write(folder, error) from error

    def release(self) -> None:
        """Give the right back, if it is still there."""
        if self._descriptor is not None:
            # A child that is just being forked has the descriptor too.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self.after_fork()

    def after_fork(self) -> None:
        """Close what was inherited: the system would take the lock back only with the last process that has it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
