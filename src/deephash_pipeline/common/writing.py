"""Messages for files that cannot be written, with the remedy for each fault of a disk."""

import errno
import os
import re
import sqlite3
from pathlib import Path

from deephash_pipeline.common.errors import InputError

ROOM = "make room on its disk"
RIGHT = "give the right to write, or name another place"
READ_ONLY = "its disk is mounted for reading, so name another place"
FAILED = "look after its disk, or name a place on another"
DAMAGED = "it is damaged, so restore it from a backup"
WAIT = "wait until that other program is done"
REMEDIES = {
    errno.ENOSPC: ROOM,
    errno.EDQUOT: "make room within the quota, or ask for a larger one",
    errno.EROFS: READ_ONLY,
    errno.EIO: FAILED,
    errno.EACCES: RIGHT,
    errno.EPERM: RIGHT,
    errno.ENAMETOOLONG: "give a shorter name",
    errno.EFBIG: "name a place whose file system has larger files",
    errno.EBUSY: WAIT,
}
REMEDIES_OF_SQLITE = {
    sqlite3.SQLITE_FULL: ROOM,
    sqlite3.SQLITE_IOERR: "make room on its disk, and look after it",
    sqlite3.SQLITE_NOTADB: DAMAGED,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_BUSY: WAIT,
    sqlite3.SQLITE_LOCKED: WAIT,
}
ERROR_NUMBER = re.compile(r"\[Errno (\d+)\]")


def cannot_write(path: str | Path, error: Exception, then: str = "") -> InputError:
    """What is to be raised where a file cannot be written: the fault, and the remedy for it.

    Args:
        path: what was to be written.
        error: what the system, SQLite or `shutil` has raised.
        then: what to say after the remedy.

    Example:
        >>> print(cannot_write("a.npy", OSError(errno.EROFS, "Read-only file system")))
        a.npy cannot be written (Read-only file system): its disk is mounted for reading, so name another place
        >>> print(cannot_write("a", OSError([("b", "a/b", "[Errno 28] No space left on device: 'a/b'")])))
        a cannot be written (No space left on device): make room on its disk
    """
    if isinstance(error, sqlite3.Error):
        reason, code = str(error), getattr(error, "sqlite_errorcode", 0) & 0xFF
        remedy = REMEDIES_OF_SQLITE.get(code) or (ROOM if "full" in reason else RIGHT)
    else:
        number = getattr(error, "errno", None)
        # `shutil` gives a list of what has failed, in words.
        if number is None and (found := ERROR_NUMBER.search(str(error))):
            number = int(found[1])
        reason = os.strerror(number) if number else " ".join(str(error).split())
        remedy = REMEDIES.get(number or 0, "mend that, or name another place")
    return InputError(f"{path} cannot be written ({reason}): {remedy}{then}")


def require_regular(file: Path) -> None:
    """Refuse to put a file in the place of a device, a pipe or a folder.

    Raises:
        InputError: there is something, and it is no regular file.

    Example:
        >>> require_regular(Path("/dev/null"))
        Traceback (most recent call last):
        deephash_pipeline.common.errors.InputError: /dev/null is no regular file: name another
    """
    if os.path.exists(file) and not file.is_file():
        raise InputError(f"{file} is no regular file: name another")
