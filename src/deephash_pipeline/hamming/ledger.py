"""The ledger of an index, in SQLite: which segments there are, the newest items, removals, and metadata.

Every change of an index is one transaction here, and it has happened once that is on the disk (write-ahead log,
``synchronous=FULL``). Readers see the state after the last transaction, and are not in a writer's way.

Rows have digests, so that a bit that has changed on the disk is noticed. Every row of metadata has its own, and the
setting ``described`` is their number; ``rows`` is the sum of those of newest and removed items; ``digest`` is that of
all settings and segments.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from itertools import chain
from operator import ne
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import flush
from deephash_pipeline.hamming.database import Database, digest_of, digests_of, named
from deephash_pipeline.hamming.features import FeatureForm
from deephash_pipeline.hamming.segments import Contents, Segment
from deephash_pipeline.hamming.written import read

# After the name of a file that is being made.
UNFINISHED = ".new"
POSITION = "position"
POSITIONS_AT_ONCE = 500
ROW_DIGEST = "digest of this row"
ROWS, DESCRIBED, DIGEST = "rows", "described", "digest"
SCHEMA = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE segments (first_position INTEGER PRIMARY KEY, name TEXT NOT NULL, items INTEGER NOT NULL,
                       digest TEXT NOT NULL);
CREATE TABLE tail (position INTEGER PRIMARY KEY, id NOT NULL, code BLOB NOT NULL, features BLOB);
CREATE TABLE removed (change INTEGER PRIMARY KEY, position INTEGER NOT NULL UNIQUE);
CREATE TABLE metadata (position INTEGER PRIMARY KEY, "digest of this row" INTEGER);
"""
TAIL_DIGEST = "digest_of(position, 'id', id, 'code', code, 'features', features)"
ENTRY = "SegmentEntry(first_position={}, name={!r}, items={}, digest={!r})"
"""How the digest of settings and segments writes a segment."""
ROWS_AT_ONCE = 16_384


class Ledger(Database):
    """The tables of one index; see `Database` for its arguments."""

    def __init__(self, path: Path | None, read_only: bool = False) -> None:
        super().__init__(path, read_only)
        # What the rows that a transaction has written add to the sum of digests.
        self._row_digests = 0
        self._whole_from = 0 if path is None else 2**63

    @classmethod
    def create(cls, path: Path | None, settings: Mapping[str, Any]) -> Self:
        """Make the ledger of a new index; its file is there once it has all tables.

        Raises:
            InputError: if there is one.
        """
        if path is None:
            ledger = cls(None)
            ledger._make_tables(settings)
            return ledger
        if path.exists():
            raise InputError(f"{path.parent} has an index; give a new folder, or open the index in it.")
        unfinished = path.with_name(path.name + UNFINISHED)
        for leftover in path.parent.glob(f"{unfinished.name}*"):
            leftover.unlink()
        with closing(cls(unfinished)) as made:
            made.execute("PRAGMA journal_mode=WAL")
            made._make_tables(settings)
        unfinished.rename(path)
        flush(path.parent)
        ledger = cls(path)
        # What it has, this process has written.
        ledger._whole_from = 0
        return ledger

    def _make_tables(self, settings: Mapping[str, Any]) -> None:
        with self.transaction():
            for statement in SCHEMA.strip().split(";\n"):
                self.execute(statement)
            for name, value in {**settings, ROWS: 0, DESCRIBED: 0}.items():
                self.set(name, value)

    @contextmanager
    def transaction(self, reading: bool = False) -> Iterator[None]:
        """Make all that is done inside one transaction: on the disk after it, or, after an error, nowhere."""
        self._row_digests = 0
        self.execute("BEGIN" if reading else "BEGIN IMMEDIATE")
        try:
            yield
            if not reading and self.path is not None:
                self.set(ROWS, self.settings().get(ROWS, 0) + self._row_digests)
                self.set(DIGEST, self._digest_of_settings())
            self.execute("COMMIT")
        except BaseException:
            # A full disk has SQLite roll back by itself.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _digest_of_settings(self) -> int:
        settings = sorted(str(setting) for setting in self.settings().items() if setting[0] != DIGEST)
        segments = ", ".join(ENTRY.format(*segment) for segment in self.segments())
        return digest_of("settings", "", f"{settings}[{segments}]")

    def verify(self) -> None:
        """Look at all that is read when an index is opened.

        Raises:
            InputError: it is not what was written.
        """
        with self.transaction(reading=True):
            settings = self.settings()
            ((tail, removed),) = self.rows(
                f"SELECT (SELECT SUM({TAIL_DIGEST}) FROM tail), (SELECT SUM(digest_of({POSITION}, '', 0)) FROM removed)"
            )
            found = (self._digest_of_settings(), (tail or 0) + (removed or 0))
            if self.path is not None and (settings.get(DIGEST), settings.get(ROWS)) != found:
                raise self.damaged("rows are not those that were written")

    def _verify_metadata(self, first: int = 0) -> None:
        """Look at all metadata from a position on, once: those of some items are looked at when they are read."""
        if self._whole_from <= first:
            return
        names = self.columns()
        columns = ", ".join(map(named, [POSITION, ROW_DIGEST, *names]))
        within = nullcontext() if self._connection.in_transaction else self.transaction(reading=True)
        with within, self._understood():
            described, others = self.settings().get(DESCRIBED), 0
            ((there,),) = self.rows("SELECT COUNT(*) FROM metadata")
            cursor = self.execute(f"SELECT {columns} FROM metadata WHERE {POSITION} >= ?", (first,))
            for rows in iter(lambda: cursor.fetchmany(ROWS_AT_ONCE), []):
                positions, digests, *values = zip(*rows, strict=True)
                found = digests_of(positions, dict(zip(names, values, strict=True)))
                others += sum(map(ne, digests, found))
        if others or described != there:
            raise self.damaged("metadata are not those that were written")
        self._whole_from = first

    def settings(self) -> dict[str, Any]:
        """All settings by name."""
        return dict(self.rows("SELECT name, value FROM settings"))

    def set(self, name: str, value: Any) -> None:
        """Change a setting."""
        self.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    def segments(self) -> list[tuple[int, str, int, str]]:
        """First position, name, number of items and digest of every segment, in the order of their items."""
        return self.rows("SELECT first_position, name, items, digest FROM segments ORDER BY 1")

    def replace_segments(self, old: Sequence[Segment], new: Segment | None) -> None:
        """Put a segment in the place of others, of which the tail may be one, and forget what was removed of theirs."""
        self.execute("DELETE FROM segments WHERE name = ?", [(segment.name,) for segment in old], many=True)
        if new is not None:
            values = new.first_position, new.name, new.size, new.digest
            self.execute("INSERT INTO segments VALUES (?, ?, ?, ?)", values)
        for segment in old:
            if not segment.name:
                self._clear_tail()
            if segment.removed:
                self._forget(segment.removed_positions().tolist())
        self.set("generation", self.settings()["generation"] + 1)

    def tail_after(self, position: int, words: int, form: FeatureForm) -> Contents:
        """Items of the tail whose position is larger than this, with codes of so many words and features of a form."""
        rows = self.rows("SELECT * FROM tail WHERE position > ? ORDER BY position", (position,))
        positions, ids, codes, features = zip(*rows, strict=True) if rows else ((), (), (), ())
        listed = np.empty(len(rows), dtype=object)
        listed[:] = ids
        code_words = np.frombuffer(b"".join(codes), dtype="<u8").reshape(len(rows), words)
        stored = form.no_rows(len(rows))
        if form.width:
            stored = np.frombuffer(b"".join(features), dtype=form.dtype).reshape(stored.shape)
        return Contents(code_words.T, listed, np.array(positions, dtype=np.int64), stored)

    def append_to_tail(self, contents: Contents) -> None:
        """Add items to the tail."""
        positions, ids = contents.positions.tolist(), contents.ids.tolist()
        codes = list(map(bytes, np.ascontiguousarray(contents.words.T.astype("<u8"))))
        features = [row.tobytes() or None for row in contents.features]
        rows = zip(positions, ids, codes, features, strict=True)
        self.execute("INSERT INTO tail VALUES (?, ?, ?, ?)", rows, many=True)
        if self.path is not None:
            self._row_digests += sum(digests_of(positions, {"id": ids, "code": codes, "features": features}))

    def _clear_tail(self) -> None:
        """Forget the items of the tail: a segment has them."""
        ((digests,),) = self.rows(f"SELECT SUM({TAIL_DIGEST}) FROM tail")
        self._row_digests -= digests or 0
        self.execute("DELETE FROM tail")

    def removed_after(self, change: int) -> tuple[int, NDArray[np.int64]]:
        """The number of the last removal, and the positions removed after this one."""
        rows = self.rows("SELECT change, position FROM removed WHERE change > ? ORDER BY change", (change,))
        return (rows[-1][0] if rows else change), np.array([row[1] for row in rows], dtype=np.int64)

    def remove(self, positions: Sequence[int]) -> None:
        """Remove the items at some positions."""
        values = [(position,) for position in positions]
        self.execute("INSERT INTO removed (position) VALUES (?)", values, many=True)
        self._row_digests += sum(digest_of(position, "", 0) for position in positions)

    def _forget(self, positions: Sequence[int]) -> None:
        """Forget removed items: no segment has them any more."""
        values = [(position,) for position in positions]
        self.execute("DELETE FROM removed WHERE position = ?", values, many=True)
        self._row_digests -= sum(digest_of(position, "", 0) for position in positions)
        gone = self.execute("DELETE FROM metadata WHERE position = ?", values, many=True).rowcount
        self.set(DESCRIBED, self.settings().get(DESCRIBED, 0) - max(gone, 0))

    def columns(self) -> list[str]:
        """Names of the columns of metadata."""
        names = [row[1] for row in self.rows("PRAGMA table_info(metadata)")]
        return [name for name in names if name not in (POSITION, ROW_DIGEST)]

    def add_metadata(self, positions: Sequence[int], columns: Mapping[str, Sequence[Any]]) -> None:
        """Write the metadata of some items; columns that are new are made."""
        if not columns:
            return
        known = {name.lower(): name for name in self.columns()}
        for name in columns:
            if name.lower() not in known:
                self.execute(f"ALTER TABLE metadata ADD COLUMN {quoted(name)}")
                known[name.lower()] = name
        names = [known[name.lower()] for name in columns]
        of_names = dict(zip(names, columns.values(), strict=True))
        digests = [None] * len(positions) if self.path is None else digests_of(positions, of_names)
        places = ", ".join("?" * (2 + len(names)))
        self.execute(
            f"INSERT INTO metadata ({', '.join([POSITION, named(ROW_DIGEST), *map(quoted, names)])}) VALUES ({places})",
            zip(positions, digests, *columns.values(), strict=True),
            many=True,
        )
        self.set(DESCRIBED, self.settings().get(DESCRIBED, 0) + len(positions))

    def metadata(self, positions: Sequence[int]) -> list[dict[str, Any]]:
        """Metadata of the items at some positions, without empty values."""
        found: dict[int, dict[str, Any]] = {}
        names = self.columns()
        columns = ", ".join(map(named, [POSITION, ROW_DIGEST, *names]))
        for start in range(0, len(positions), POSITIONS_AT_ONCE):
            some = positions[start : start + POSITIONS_AT_ONCE]
            statement = f"SELECT {columns} FROM metadata WHERE {POSITION} IN ({', '.join('?' * len(some))})"
            for position, digest, *row in self.rows(statement, some):
                values = {name: value for name, value in zip(names, row, strict=True) if value is not None}
                if digest is not None and digest != digest_of(position, *chain(*values.items())):
                    raise self.damaged("metadata are not those that were written")
                found[position] = {name: read(value) for name, value in values.items()}
        if any(position not in found for position in positions):
            # Those were added without any, or the rows are lost.
            self._verify_metadata()
        return [found.get(position, {}) for position in positions]

    def values(self, column: str, most: int) -> list[Any]:
        """The distinct values of a column, ascending, without the empty one."""
        self._verify_metadata()
        name = quoted(column)
        rows = self.rows(f"SELECT DISTINCT {name} FROM metadata WHERE {name} IS NOT NULL ORDER BY 1 LIMIT ?", (most,))
        found = [read(row[0]) for row in rows]
        tags = {tag for value in found if isinstance(value, list) for tag in value}
        return [*(value for value in found if not isinstance(value, list)), *sorted(tags)][:most]

    def column(self, name: str, first: int, stop: int) -> list[Any]:
        """The values of a column at all positions from one up to another; None where there is none."""
        self._verify_metadata(first)
        values: list[Any] = [None] * (stop - first)
        column = quoted(name)
        for position, value in self.rows(
            f"SELECT {POSITION}, {column} FROM metadata WHERE {POSITION} >= ? AND {POSITION} < ? "
            f"AND {column} IS NOT NULL",
            (first, stop),
        ):
            values[position - first] = read(value)
        return values


def quoted(name: str) -> str:
    """A column's name as SQL writes it.

    Raises:
        InputError: if it cannot be one.
    """
    if not isinstance(name, str) or not name or "\0" in name or name.lower() in (POSITION, ROW_DIGEST):
        raise InputError(f"metadata has a column {name!r}; give columns names that are not empty and not `{POSITION}`.")
    return named(name)
