"""One run at a time for each benchmark, and what killed runs have left."""

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.forks import tell_after_fork
from deephash_pipeline.common.stores import TEMPORARY
from deephash_pipeline.common.writing import cannot_write

LOCK_FILE = "run.lock"


class RunLock:
    """The right to write the artefacts of one benchmark, by ``flock``: the system takes it from a process that dies.

    Args:
        folder: of the benchmark. The file ``run.lock`` is made in it and stays; it has the number of the process until
            the run has come to its end, or is killed.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK_FILE
        self._file: IO[str] | None = None
        tell_after_fork(self)

    @property
    def is_left(self) -> bool:
        """Whether a run is at work, or was killed and none has come to its end after it."""
        return self._path.exists() and self._path.stat().st_size > 0

    def take(self) -> None:
        """Take it.

        Raises:
            InputError: another run has it, or the folder cannot be written to.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = self._path.open("a", encoding="ascii")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.truncate(0)
            os.write(file.fileno(), f"{os.getpid()}\n".encode())
        except BlockingIOError as error:
            file.close()
            raise InputError(
                f"another run, process {self._path.read_text('ascii').strip()}, works on {self._path.parent}: wait for "
                "its end, or stop it"
            ) from error
        except OSError as error:
            raise cannot_write(self._path, error) from error
        self._file = file

    def after_fork(self) -> None:
        """Leave the right to the process that this one was forked from."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def give_back(self) -> None:
        """Give it back, if it was taken."""
        if self._file is not None:
            self._file.truncate(0)
            # A child that is just being forked has the file too.
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._file.close()
            self._file = None


def sweep(folders: Iterable[Path]) -> list[Path]:
    """Remove the temporary files that killed runs have left below some folders; only who has the lock may.

    Links are not followed, and hidden folders, such as those of git, not entered.

    Returns:
        What was removed.
    """
    removed = []
    for folder in folders:
        for place, below, files in os.walk(folder):
            below[:] = [name for name in below if not name.startswith(".")]
            removed += [Path(place, name) for name in files if TEMPORARY.fullmatch(name)]
    for path in removed:
        path.unlink(missing_ok=True)
    return removed
