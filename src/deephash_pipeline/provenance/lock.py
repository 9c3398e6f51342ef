"""One run at a time for each benchmark, and what killed runs have left."""

import fcntl
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from deephash_pipeline.common.errors import InputError

LOCK = "run.lock"
TEMPORARY: Final = re.compile(r"\..+\.[\w.-]+-[0-9a-f]{32}(\.\w+)?")
"""Names of files that are being written, see `deephash_pipeline.common.stores.temporary_name`."""


class RunLock:
    """The right to write the artefacts of one benchmark, by ``flock``: the system takes it from a process that dies.

    Args:
        folder: of the benchmark. The file ``run.lock`` is made in it, and removed at the end; one that a killed run has
            left locks nothing, and says that the run had not come to its end.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        self._file: int | None = None

    @property
    def is_left(self) -> bool:
        """Whether a run is at work, or was killed and none has come to its end after it."""
        return self._path.exists()

    def take(self) -> None:
        """Take it.

        Raises:
            InputError: another run has it, or the folder cannot be written to.
        """
        while True:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                raise InputError(
                    f"{self._path} cannot be written ({error.strerror}): make the folder writable"
                ) from error
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                process = os.pread(file, 20, 0).decode(errors="replace").strip()
                os.close(file)
                raise InputError(
                    f"another run, process {process}, works on {self._path.parent}: wait for its end, or stop it"
                ) from error
            # Whoever had it before may have removed the file between the two calls.
            if _is_at(file, self._path):
                break
            os.close(file)
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        self._file = file

    def give_back(self) -> None:
        """Give it back, if it was taken."""
        file, self._file = self._file, None
        if file is not None:
            self._path.unlink(missing_ok=True)
            os.close(file)


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def sweep(folders: Iterable[Path]) -> list[Path]:
    """Remove the temporary files that killed runs have left below some folders; only who has the lock may.

    Returns:
        What was removed.
    """
    removed = []
    for folder in folders:
        for path in folder.rglob(".*"):
            if TEMPORARY.fullmatch(path.name) and path.is_file():
                path.unlink(missing_ok=True)
                removed.append(path)
    return removed
