"""Codes in PostgreSQL: a table with `bit(n)`, compared by the operator ``<~>`` of the extension pgvector."""

import json
import queue
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.extras import required
from deephash_pipeline.engines.exported import EngineError, ExportedIndex, Hit
from deephash_pipeline.engines.rows import About, Row, bits_of, code_of_bits, item_of, plain_value
from deephash_pipeline.hamming import Item, ItemId
from deephash_pipeline.hamming.conditions import DIFFERS, EQUALS, IN, HasKind, Where, named_conditions
from deephash_pipeline.hamming.filters import kind_of

LARGEST_EF_SEARCH = 1000
SMALLEST_EF_SEARCH = 40
MOST_NAME_BYTES = 50
# For each address of a name, such as that of IPv4 and that of IPv6.
SECONDS_AN_ADDRESS = 5


class PostgresIndex(ExportedIndex):
    """The table of an export.

    Answers are exact and in the order of (distance, insertion) unless `approximate`.

    Args:
        url: address of the database, as libpq takes it: ``postgresql://user@host/database``.
        name: name of the table.
        approximate: True to search by the HNSW index of `add_hnsw`. Recall that forgives ties hides what it misses: on
            codes of a network most answers can be wrong.

    Raises:
        InputError: psycopg is not installed, nobody answers, or the table is no export.
    """

    def __init__(self, url: str, name: str, approximate: bool = False) -> None:
        self._psycopg = required("psycopg", "postgres")
        if not name or len(name.encode()) > MOST_NAME_BYTES or "\0" in name:
            raise InputError(f"the table name {name!r} has not 1 to {MOST_NAME_BYTES} bytes; give another.")
        self._url, self.name, self.approximate = url, name, approximate
        self.place = f"table {name} of {urlsplit(url).hostname or 'PostgreSQL'}"
        self._idle: queue.LifoQueue[Any] = queue.LifoQueue()
        self._table = self._psycopg.sql.Identifier(name)
        self.about = None
        with self._connection() as connection:
            if _is_there(connection, name):
                row = connection.execute("SELECT obj_description(to_regclass(quote_ident(%s)), 'pg_class')", [name])
                self.about = About.from_json(row.fetchone()[0], self.place)
            if approximate and not _is_there(connection, f"{name}_hnsw"):
                raise InputError(f"{self.place} has no HNSW index: make it by `deephash-pipeline export ... --hnsw`.")

    def create(self, about: About) -> None:
        """Make the table of the rows, with the extension pgvector."""
        kind = "text" if about.text_ids else "bigint"
        with self._connection() as connection:
            try:
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            except self._psycopg.Error as error:
                reason = " ".join(str(error).split())
                raise InputError(f"{self.place} needs the extension pgvector 0.7 or later ({reason}).") from error
            with connection.transaction():
                connection.execute(
                    self._sql(
                        "CREATE TABLE {table} (position bigint PRIMARY KEY, id " + kind + " NOT NULL, "
                        "digest bigint NOT NULL, metadata jsonb NOT NULL, "
                        f"code bit({about.code_length}) NOT NULL"
                        + (f", vector halfvec({about.width}) NOT NULL)" if about.width else ")")
                    )
                )
                connection.execute(self._sql("CREATE INDEX ON {table} (id)"))
                self._describe(connection, about)
        self.about = about

    def describe(self, about: About) -> None:
        """Replace the description that the export gives of itself."""
        with self._connection() as connection:
            self._describe(connection, about)
            if about.items is not None:
                # The planner is to know how many rows there are.
                connection.execute(self._sql("ANALYZE {table}"))
        self.about = about

    def _describe(self, connection: Any, about: About) -> None:
        text = self._psycopg.sql.Literal(about.to_json())
        connection.execute(self._sql("COMMENT ON TABLE {table} IS {text}", text=text))

    def stored(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions, ascending, and digests of the rows that are there."""
        with self._connection() as connection:
            rows = connection.execute(self._sql("SELECT position, digest FROM {table} ORDER BY position")).fetchall()
        positions, digests = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        return positions, digests

    def put(self, rows: Sequence[Row]) -> None:
        """Store rows, in place of those of equal positions, all in one transaction."""
        assert self.about is not None
        with self._connection() as connection, connection.transaction():
            positions = [row.position for row in rows]
            connection.execute(self._sql("DELETE FROM {table} WHERE position = ANY(%s)"), [positions])
            vector = ", vector" if self.about.width else ""
            copying = self._sql("COPY {table} (position, id, digest, metadata, code" + vector + ") FROM STDIN")
            with connection.cursor() as cursor, cursor.copy(copying) as copy:
                for row in rows:
                    bits = bits_of(row.code, self.about.code_length)
                    numbers = [json.dumps(row.vector.tolist())] if vector else []
                    copy.write_row((row.position, row.id, row.digest, row.metadata, bits, *numbers))

    def delete(self, positions: Sequence[int]) -> None:
        """Delete the rows at some positions."""
        with self._connection() as connection:
            connection.execute(self._sql("DELETE FROM {table} WHERE position = ANY(%s)"), [list(positions)])

    def count(self) -> int:
        """Number of rows, counted by the engine."""
        with self._connection() as connection:
            return int(connection.execute(self._sql("SELECT count(*) FROM {table}")).fetchone()[0])

    def add_hnsw(self) -> None:
        """Make the index for approximate searches, if it is not there."""
        with self._connection() as connection:
            made = self._sql(
                "CREATE INDEX IF NOT EXISTS {index} ON {table} USING hnsw (code bit_hamming_ops)",
                index=self._psycopg.sql.Identifier(f"{self.name}_hnsw"),
            )
            connection.execute(made)

    def nearest(self, codes: NDArray[np.uint8], k: int, where: Where | None) -> list[list[Hit]]:
        """The k nearest rows of each query, in the order of (distance, position)."""
        condition, values = condition_of(where or {}, self.columns, self.finished.has_kind)
        found = []
        with self._connection() as connection:
            for code in codes:
                bits = bits_of(code, self.code_length)
                hits = self._nearest_by_hnsw(connection, bits, k, condition, values) if self.approximate else []
                # Where the graph ends before k rows are found, and where it is not asked, all rows are compared.
                if len(hits) < k:
                    # No index has the distance as an integer, so none takes part.
                    exact = self._sql(
                        "SELECT position, id, (code <~> %s::bit({bits}))::int AS distance FROM {table} "
                        f"WHERE {condition} ORDER BY distance, position LIMIT %s"
                    )
                    hits = list(map(Hit._make, connection.execute(exact, [bits, *values, k]).fetchall()))
                found.append(hits)
        return found

    def _nearest_by_hnsw(self, connection: Any, bits: str, k: int, condition: str, values: list[Any]) -> list[Hit]:
        ef_search = min(max(k, SMALLEST_EF_SEARCH), LARGEST_EF_SEARCH)
        by_graph = self._sql(
            "SELECT * FROM (SELECT position, id, (code <~> %s::bit({bits}))::int AS distance FROM {table} "
            f"WHERE {condition} ORDER BY code <~> %s::bit({{bits}}) LIMIT %s) AS found ORDER BY distance, position"
        )
        with connection.transaction():
            connection.execute("SET LOCAL enable_seqscan = off")
            connection.execute("SET LOCAL enable_sort = off")
            connection.execute(f"SET LOCAL hnsw.ef_search = {ef_search}")
            connection.execute("SET LOCAL hnsw.iterative_scan = strict_order")
            return list(map(Hit._make, connection.execute(by_graph, [bits, *values, bits, k]).fetchall()))

    def found(self, ids: Sequence[ItemId]) -> dict[ItemId, Item]:
        """Those of some items that are there."""
        asked = self._sql("SELECT id, code::text, metadata FROM {table} WHERE id = ANY(%s)")
        with self._connection() as connection:
            rows = connection.execute(asked, [[item_id for item_id in ids if "\0" not in str(item_id)]]).fetchall()
        return {item_id: item_of(item_id, code_of_bits(bits), metadata) for item_id, bits, metadata in rows}

    def at(self, positions: Sequence[int]) -> dict[int, ItemId]:
        """Ids of the rows at some positions, of those that are there."""
        asked = self._sql("SELECT position, id FROM {table} WHERE position = ANY(%s)")
        with self._connection() as connection:
            return dict(connection.execute(asked, [list(positions)]).fetchall())

    def close(self) -> None:
        """Close the connection."""
        while not self._idle.empty():
            self._idle.get_nowait().close()

    def _sql(self, statement: str, **parts: Any) -> Any:
        length = self._psycopg.sql.Literal(self.about.code_length) if self.about is not None else None
        return self._psycopg.sql.SQL(statement).format(table=self._table, bits=length, **parts)

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """A connection that no other thread uses meanwhile."""
        try:
            try:
                connection = self._idle.get_nowait()
            except queue.Empty:
                connection = self._psycopg.connect(self._url, autocommit=True, connect_timeout=SECONDS_AN_ADDRESS)
            try:
                yield connection
            finally:
                if connection.closed:
                    # The others were lost with the server too.
                    self.close()
                else:
                    self._idle.put(connection)
        except self._psycopg.Error as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise EngineError(f"{self.place} cannot be asked ({reason}); check the address and the server.") from error


def _is_there(connection: Any, name: str) -> bool:
    return bool(connection.execute("SELECT to_regclass(quote_ident(%s)) IS NOT NULL", [name]).fetchone()[0])


def condition_of(where: Where, columns: Sequence[str], has_kind: HasKind) -> tuple[str, list[Any]]:
    """Translate a condition to SQL over `metadata`: the expression, and the values of its places.

    Values compare as SQLite compares them: text by its bytes, and with nothing of another kind.

    Args:
        where: conditions, see `HammingIndex.search`.
        columns: names of the columns that there are.
        has_kind: function that says whether a column has a value of a kind.

    Raises:
        InputError: there is no such column, it has values of another kind, or a condition has another form.

    Example:
        >>> condition_of({"label": ["a", None]}, ["label"], lambda column, kind: True)
        ('true AND (metadata->%s = ANY(%s::jsonb[]) OR metadata->%s IS NULL)', ['label', ['"a"'], 'label'])
    """
    parts, values = ["true"], list[Any]()
    for name, operator, value in named_conditions(where, columns, plain_value, has_kind):
        column = "metadata->%s"
        if operator == IN:
            present = [json.dumps(each) for each in value if each is not None]
            parts.append(f"({column} = ANY(%s::jsonb[]){f' OR {column} IS NULL' if None in value else ''})")
            values += [name, present, *([name] if None in value else [])]
        elif value is None:
            parts.append(f"{column} IS{' NOT' if operator == DIFFERS else ''} NULL")
            values.append(name)
        elif operator in (EQUALS, DIFFERS):
            parts.append(f"{column} {'=' if operator == EQUALS else 'IS DISTINCT FROM'} %s::jsonb")
            values += [name, json.dumps(value)]
        else:
            kind, read = ("number", "::numeric") if kind_of(value) == "numbers" else ("string", ' COLLATE "C"')
            compared = f"(metadata->>%s){read} {operator} %s"
            parts.append(f"CASE jsonb_typeof({column}) WHEN '{kind}' THEN {compared} ELSE false END")
            # A float would make the other side one too, which has fewer digits than 64 bits.
            values += [name, name, Decimal(repr(value)) if kind == "number" else value]
    return " AND ".join(parts), values
