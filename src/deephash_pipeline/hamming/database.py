"""The SQLite file of an index: transactions, and errors that say what is wrong."""

import ctypes
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import add
from pathlib import Path
from typing import Any
from zlib import crc32

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.forks import tell_after_fork

BUSY_SECONDS = 30.0
NOT_DAMAGE = (
    *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY),
    *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN),
)


class Database:
    """A connection to a file, whose statements know `digest_of`; a forked process gets another, for reading.

    Args:
        path: the file; None keeps it in memory.
        read_only: True to refuse changes. A file that nobody can write, as on a disk that is mounted for reading, is
            read as it is.
    """

    def __init__(self, path: Path | None, read_only: bool = False) -> None:
        self.path, self.read_only = path, read_only
        self._closed = self._is_inherited = False
        self._connected = 0
        self._connect()
        self._file = None if path is None else identity_of(path)
        tell_after_fork(self)

    def _connect(self) -> None:
        place = ":memory:" if self.path is None else f"{self.path.absolute().as_uri()}?"
        # Looked at first: what is written from now on is another state.
        self._fixed = _fixed_state(self.path) if self.path is not None and self.read_only else None
        if self._fixed:
            # SQLite cannot make its shared memory there, and needs none.
            place += "immutable=1"
        self._connection = sqlite3.connect(
            place, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=self.path is not None
        )
        self._connected += 1
        self._connection.create_function("digest_of", -1, digest_of, deterministic=True)
        if self.path is not None:
            self.execute("PRAGMA synchronous=FULL")
        if self.read_only:
            self.execute("PRAGMA query_only=ON")

    def execute(self, statement: str, values: Any = (), many: bool = False) -> sqlite3.Cursor:
        """Carry out a statement, once or for each of many values."""
        with self._understood():
            return (self._connection.executemany if many else self._connection.execute)(statement, values)

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows that a statement finds."""
        with self._understood():
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """Tell damage of the file, which shows in many forms, from a full disk or a missing right.

        Raises:
            InputError: the file is damaged, or closed.
            sqlite3.OperationalError: the disk is full, or the like.
        """
        self.require_open()
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in NOT_DAMAGE:
                raise
            raise self.damaged(str(error)) from error

    def damaged(self, reason: str) -> InputError:
        """What is to be raised where the file is not what was written."""
        return InputError(f"{self.path} is damaged ({reason}); restore it from a backup.")

    def require_open(self) -> None:
        """Raise InputError if the database has been closed."""
        if self._closed:
            raise InputError(f"the index {self.path.parent if self.path else 'in memory'} is closed; open it again.")
        if self._is_inherited:
            assert self.path is not None
            if identity_of(self.path) != self._file:
                raise InputError(f"the index {self.path.parent} has been replaced or removed; open it again.")
            self._is_inherited = False
            self._connect()

    def close(self) -> None:
        """Close the database."""
        self._closed = True
        if not self._is_inherited:
            self._connection.close()

    def after_fork(self) -> None:
        """Leave the connection to the process that made it, and make another when one is needed."""
        if self.path is not None and not self._closed and not self._is_inherited:
            # SQLite may do nothing in two processes with one connection, not even close it.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
            self._is_inherited = self.read_only = True

    def version(self) -> tuple[int, int]:
        """Two numbers, of which one changes when another connection has changed the database."""
        self.require_open()
        if self.path is not None and self._fixed and _state(self.path) not in (None, self._fixed):
            # The disk is mounted for writing elsewhere; SQLite does not look at what it was told to be immutable.
            self._connection.close()
            self._connect()
        return self._connected, int(self.rows("PRAGMA data_version")[0][0])


def identity_of(path: Path) -> tuple[int, int] | None:
    """What tells a file from one that takes its place; None where there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _state(path: Path) -> tuple[int, ...] | None:
    """What tells a file of SQLite and its log from another state of them, the log's size last; None without a file."""
    try:
        file = path.stat()
    except FileNotFoundError:
        return None
    try:
        log = path.with_name(f"{path.name}-wal").stat()
    except FileNotFoundError:
        return file.st_ino, file.st_mtime_ns, file.st_size, 0, 0
    return file.st_ino, file.st_mtime_ns, file.st_size, log.st_mtime_ns, log.st_size


def _fixed_state(path: Path) -> tuple[int, ...] | None:
    """The state of a file on a disk that is mounted for reading, if it is all there is of its database."""
    state = _state(path)
    return state if state and not state[-1] and os.statvfs(path).f_flag & os.ST_RDONLY else None


def digest_of(row: Any, *pairs: Any) -> int:
    """The digest of a row: the sum of those of its columns, of which empty ones do not count.

    Args:
        row: number of the row.
        pairs: names and values of columns, alternating.

    Example:
        >>> digest_of(3, "label", "cat", "year", None) == digest_of(3, "label", "cat") != digest_of(4, "label", "cat")
        True
    """
    columns = zip(pairs[::2], pairs[1::2], strict=True)
    return sum(crc32(f"{row}\0{name}\0{_plain(value)}".encode()) for name, value in columns if value is not None)


def digests_of(rows: Sequence[int], columns: Mapping[str, Sequence[Any]]) -> list[int]:
    """`digest_of` of many rows, a column after the other.

    Example:
        >>> digests_of([3, 4], {"label": ["cat", None]}) == [digest_of(3, "label", "cat"), 0]
        True
    """
    total = [0] * len(rows)
    # A digest goes on from that of what is before it: numbers of rows are digested once for all columns.
    begun = [crc32(b"%d\0" % row) for row in rows]
    for name, values in columns.items():
        kinds = set(map(type, values))
        if len(kinds) == 1 and (kind := kinds.pop()) in PLAIN_OF:
            found: Iterator[int] = map(crc32, _endings(f"{name}\0{kind.__name__[0]}", values, PLAIN_OF[kind]), begun)
        else:
            found = (
                0 if value is None else crc32(f"{name}\0{_plain(value)}".encode(), before)
                for value, before in zip(values, begun, strict=True)
            )
        total = list(map(add, total, found))
    return total


def _endings(start: str, values: Sequence[Any], plain: Callable[[Any], Any]) -> Iterator[bytes]:
    """What is digested of values of one type, which is written once where few are different."""
    distinct = set(values)
    if 2 * len(distinct) > len(values):
        return (f"{start}{text}".encode() for text in map(plain, values))
    written = {value: f"{start}{plain(value)}".encode() for value in distinct}
    return map(written.__getitem__, values)


# How values of one type are written; before them stands the first letter of its name.
PLAIN_OF: dict[type, Callable[[Any], Any]] = {str: str, int: int, bytes: bytes.hex, float: lambda value: value + 0.0}


def _plain(value: str | int | float | bytes) -> str:
    """A value as SQLite gives it back, with its type."""
    if isinstance(value, str):
        return f"s{str.__str__(value)}"
    if isinstance(value, bytes):
        return f"b{value.hex()}"
    # SQLite has no -0.0.
    return f"i{int(value)}" if isinstance(value, int) else f"f{float(value) + 0.0!r}"


def named(name: str) -> str:
    """A name as SQL writes it.

    Example:
        >>> named("label")
        '"label"'
    """
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A string as SQL writes it.

    Example:
        >>> text("it's")
        "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"
