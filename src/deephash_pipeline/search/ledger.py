"""The ledger of an index, in SQLite: which segments there are, the newest items, removals, and metadata.

Every change of an index is one transaction here, and it has happened once that is on the disk (write-ahead log,
``synchronous=FULL``). Readers see the state after the last transaction, and are not in a writer's way.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.errors import InputError
from deephash_pipeline.search.segments import Contents

POSITION = "position"
SCHEMA = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE segments (first_position INTEGER PRIMARY KEY, name TEXT NOT NULL, items INTEGER NOT NULL,
                       digest TEXT NOT NULL);
CREATE TABLE tail (position INTEGER PRIMARY KEY, id NOT NULL, code BLOB NOT NULL, features BLOB);
CREATE TABLE removed (change INTEGER PRIMARY KEY, position INTEGER NOT NULL UNIQUE);
CREATE TABLE metadata (position INTEGER PRIMARY KEY);
"""
BUSY_SECONDS = 30.0
POSITIONS_AT_ONCE = 500
# SQLite begins its log again after a thousand pages and one transaction; who makes few changes needs no room for them.
LOG_PAGES = 1024
CHECKPOINT_PAGES = 1000
CHANGES_BEFORE_ROOM = 8


@dataclass(frozen=True)
class TailRow:
    """An item that is not in a segment yet."""

    position: int
    id: int | str
    code: bytes
    features: bytes | None


@dataclass(frozen=True)
class SegmentEntry:
    """What the ledger knows of a segment."""

    first_position: int
    name: str
    items: int
    digest: str


class Ledger:
    """The tables of one index.

    Args:
        path: of the database; None keeps it in memory.
        read_only: whether to refuse changes.
    """

    def __init__(self, path: Path | None, read_only: bool = False) -> None:
        self._path = path
        self._connection = sqlite3.connect(
            ":memory:" if path is None else path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        if path is not None:
            self._connection.execute("PRAGMA synchronous=FULL")
        if read_only:
            self._connection.execute("PRAGMA query_only=ON")
        self._changes = 0

    def create(self, settings: Mapping[str, Any]) -> None:
        """Make the tables of a new index."""
        if self._path is not None:
            self._connection.execute("PRAGMA journal_mode=WAL")
        with self.transaction():
            for statement in SCHEMA.strip().split(";\n"):
                self._connection.execute(statement)
            for name, value in settings.items():
                self.set(name, value)

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    @contextmanager
    def transaction(self, reading: bool = False) -> Iterator[None]:
        """Make all that is done inside one transaction: on the disk after it, or, after an error, nowhere."""
        self._connection.execute("BEGIN" if reading else "BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # A full disk has SQLite roll back by itself.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._changes += not reading
        if self._changes == CHANGES_BEFORE_ROOM and self._path is not None:
            with suppress(sqlite3.OperationalError):
                self._make_room_in_log()

    def _make_room_in_log(self) -> None:
        """Lengthen the log before it is needed.

        A transaction that makes a file longer waits for the file system's own journal too. Without waiting for the
        disk, the log is filled by changes of a number that nothing reads, and then begins anew at its old length.
        """
        self._connection.execute("PRAGMA wal_autocheckpoint=0")
        # In WAL mode this waits at checkpoints alone, so what was acknowledged stays on the disk.
        self._connection.execute("PRAGMA synchronous=NORMAL")
        try:
            for number in range(LOG_PAGES):
                self._connection.execute(f"PRAGMA user_version={number}")
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            self._connection.execute("PRAGMA synchronous=FULL")
            self._connection.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")

    def version(self) -> int:
        """A number that changes when another connection has changed the database."""
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def settings(self) -> dict[str, Any]:
        """All settings by name."""
        return dict(self._connection.execute("SELECT name, value FROM settings"))

    def set(self, name: str, value: Any) -> None:
        """Change a setting."""
        self._connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    def segments(self) -> list[SegmentEntry]:
        """All segments in the order of their items."""
        rows = self._connection.execute("SELECT first_position, name, items, digest FROM segments ORDER BY 1")
        return [SegmentEntry(*row) for row in rows]

    def replace_segments(self, old: Iterable[str], new: SegmentEntry | None) -> None:
        """Put a segment in the place of others."""
        self._connection.executemany("DELETE FROM segments WHERE name = ?", [(name,) for name in old])
        if new is not None:
            values = (new.first_position, new.name, new.items, new.digest)
            self._connection.execute("INSERT INTO segments VALUES (?, ?, ?, ?)", values)

    def tail_after(self, position: int) -> list[TailRow]:
        """Items of the tail whose position is larger than this, in order."""
        rows = self._connection.execute("SELECT * FROM tail WHERE position > ? ORDER BY position", (position,))
        return [TailRow(*row) for row in rows]

    def append_to_tail(self, rows: Iterable[TailRow]) -> None:
        """Add items to the tail."""
        values = [(row.position, row.id, row.code, row.features) for row in rows]
        self._connection.executemany("INSERT INTO tail VALUES (?, ?, ?, ?)", values)

    def clear_tail(self) -> None:
        """Forget the items of the tail: a segment has them."""
        self._connection.execute("DELETE FROM tail")

    def removed_after(self, change: int) -> tuple[int, NDArray[np.int64]]:
        """The number of the last removal, and the positions removed after this one."""
        rows = self._connection.execute(
            "SELECT change, position FROM removed WHERE change > ? ORDER BY change", (change,)
        ).fetchall()
        return (rows[-1][0] if rows else change), np.array([row[1] for row in rows], dtype=np.int64)

    def remove(self, positions: Sequence[int]) -> None:
        """Remove the items at some positions."""
        values = [(int(position),) for position in positions]
        self._connection.executemany("INSERT INTO removed (position) VALUES (?)", values)

    def forget(self, positions: Sequence[int]) -> None:
        """Forget removed items: no segment has them any more."""
        values = [(int(position),) for position in positions]
        self._connection.executemany("DELETE FROM removed WHERE position = ?", values)
        self._connection.executemany("DELETE FROM metadata WHERE position = ?", values)

    def columns(self) -> list[str]:
        """Names of the columns of metadata."""
        names = [row[1] for row in self._connection.execute("PRAGMA table_info(metadata)")]
        return [name for name in names if name != POSITION]

    def add_metadata(self, positions: Sequence[int], columns: Mapping[str, Sequence[Any]]) -> None:
        """Write the metadata of some items; columns that are new are made."""
        if not columns:
            return
        known = {name.lower(): name for name in self.columns()}
        for name in columns:
            if name.lower() not in known:
                self._connection.execute(f"ALTER TABLE metadata ADD COLUMN {quoted(name)}")
        names = ", ".join([POSITION, *map(quoted, columns)])
        places = ", ".join("?" * (1 + len(columns)))
        self._connection.executemany(
            f"INSERT INTO metadata ({names}) VALUES ({places})",
            zip(positions, *columns.values(), strict=True),
        )

    def metadata(self, positions: Sequence[int]) -> list[dict[str, Any]]:
        """Metadata of the items at some positions, without empty values."""
        found: dict[int, dict[str, Any]] = {}
        for start in range(0, len(positions), POSITIONS_AT_ONCE):
            some = [int(position) for position in positions[start : start + POSITIONS_AT_ONCE]]
            places = ", ".join("?" * len(some))
            rows = self._connection.execute(f"SELECT * FROM metadata WHERE {POSITION} IN ({places})", some)
            names = [description[0] for description in rows.description]
            for row in rows:
                values = dict(zip(names, row, strict=True))
                position = values.pop(POSITION)
                found[position] = {name: value for name, value in values.items() if value is not None}
        return [found.get(int(position), {}) for position in positions]

    def values(self, column: str, most: int) -> list[Any]:
        """The distinct values of a column, ascending, without the empty one."""
        name = quoted(column)
        rows = self._connection.execute(
            f"SELECT DISTINCT {name} FROM metadata WHERE {name} IS NOT NULL ORDER BY 1 LIMIT ?", (most,)
        )
        return [row[0] for row in rows]

    def positions_where(self, condition: str, values: Sequence[Any], after: int) -> NDArray[np.int64]:
        """Positions after one whose metadata meet a condition, ascending.

        Items that were added without metadata have no row; to them every column is empty.
        """
        stop = int(self.settings()["next_position"])
        columns = ", ".join(["0", *(f"NULL AS {quoted(name)}" for name in self.columns())])
        (holds_without,) = self._connection.execute(
            f"SELECT ({condition}) IS TRUE FROM (SELECT {columns})", values
        ).fetchone()
        found = self._connection.execute(
            f"SELECT {POSITION} FROM metadata WHERE {POSITION} > ? AND {POSITION} < ? "
            f"AND (({condition}) IS TRUE) != ? ORDER BY {POSITION}",
            (after, stop, *values, holds_without),
        )
        positions = np.fromiter((row[0] for row in found), dtype=np.int64)
        return np.setdiff1d(np.arange(after + 1, stop), positions, assume_unique=True) if holds_without else positions


def rows_of_contents(contents: Contents) -> list[TailRow]:
    """Items as rows of the tail."""
    codes, features = np.ascontiguousarray(contents.words.T.astype("<u8")), contents.features
    return [
        TailRow(position, value, codes[row].tobytes(), None if features is None else features[row].tobytes())
        for row, (position, value) in enumerate(zip(contents.positions.tolist(), contents.ids.tolist(), strict=True))
    ]


def contents_of_rows(rows: Sequence[TailRow], words: int, width: int) -> Contents:
    """Undo `rows_of_contents`, for codes of so many words and features of so many numbers."""
    ids = np.empty(len(rows), dtype=object)
    ids[:] = [row.id for row in rows]
    codes = np.frombuffer(b"".join(row.code for row in rows), dtype="<u8").reshape(len(rows), words)
    features = np.frombuffer(b"".join(row.features or b"" for row in rows), dtype="<f2")
    positions = np.array([row.position for row in rows], dtype=np.int64)
    return Contents(codes.T, ids, positions, features.reshape(len(rows), width) if width else None)


def quoted(name: str) -> str:
    """A column's name as SQL writes it.

    Raises:
        InputError: if it cannot be one.
    """
    if not isinstance(name, str) or not name or "\0" in name or name.lower() == POSITION:
        raise InputError(f"metadata has a column {name!r}; give columns names that are not empty and not `{POSITION}`.")
    return '"' + name.replace('"', '""') + '"'
