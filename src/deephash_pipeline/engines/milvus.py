"""Codes in Milvus: binary vectors, compared one by one (BIN_FLAT) by their Hamming distance.

Milvus wants lengths that are multiples of 8, and has an answer's equal distances in no order. Codes are padded with
zeros to a multiple of 64 bits, which changes no distance. Of what is as near as the k-th neighbour, Milvus is asked
for all, until it is known which items were inserted first.
"""

import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.extras import required
from deephash_pipeline.engines.exported import EngineError, ExportedIndex, Hit
from deephash_pipeline.engines.rows import About, Row, item_of, plain_value
from deephash_pipeline.hamming import Item, ItemId
from deephash_pipeline.hamming.conditions import EQUALS, IN, HasKind, Where, named_conditions

PADDED_BITS = 64
# Milvus answers with so many hits at most.
MOST_HITS = 16_384
HITS_AT_ONCE = 500_000
POSITIONS_OF_A_QUERY = 10_000
LONGEST_ID = 65_535
SECONDS_TO_CONNECT = 5
PORT = 19530
ABOUT_SUFFIX = "_about"
EXACT = {"metric_type": "HAMMING"}


class MilvusIndex(ExportedIndex):
    """The collection of an export; beside it stands another, of one row, with what the export says of itself.

    Args:
        uri: address of the server, as pymilvus takes it: ``http://host:19530``, or a file of Milvus Lite.
        name: name of the collection: letters, digits and underscores.

    Raises:
        InputError: pymilvus is not installed, nobody answers, or the collection is no export.
    """

    def __init__(self, uri: str, name: str) -> None:
        self.name = name
        self.place = f"collection {name} of Milvus"
        self.about = None
        self._client: Any = None
        try:
            server = urlsplit(uri)
            if server.hostname:
                # The client takes seconds to be imported, and tries again for minutes.
                address = (server.hostname, server.port or PORT)
                socket.create_connection(address, SECONDS_TO_CONNECT).close()
        except (OSError, ValueError) as error:
            raise self._failed(error) from error
        self._milvus = required("pymilvus", "milvus")
        try:
            self._client = self._milvus.MilvusClient(uri, timeout=SECONDS_TO_CONNECT)
        except (self._milvus.MilvusException, ValueError) as error:
            raise self._failed(error) from error
        if self._asked("has_collection", name + ABOUT_SUFFIX):
            (row,) = self._rows("key == 0", ["about"], name + ABOUT_SUFFIX) or [{}]
            self.about = About.from_json(row.get("about"), self.place)
        elif self._asked("has_collection", name):
            raise InputError(f"{self.place} was not made by `deephash-pipeline export`: give another name.")

    def create(self, about: About) -> None:
        """Make the collection of the rows, and the one that describes the export."""
        kinds = self._milvus.DataType
        schema = self._milvus.MilvusClient.create_schema(auto_id=False)
        schema.add_field("key", kinds.INT64, is_primary=True)
        schema.add_field("about", kinds.VARCHAR, max_length=LONGEST_ID)
        schema.add_field("nothing", kinds.BINARY_VECTOR, dim=8)
        self._create(self.name + ABOUT_SUFFIX, schema, nothing="BIN_FLAT")
        schema = self._milvus.MilvusClient.create_schema(auto_id=False)
        schema.add_field("position", kinds.INT64, is_primary=True)
        text, number = {"datatype": kinds.VARCHAR, "max_length": LONGEST_ID}, {"datatype": kinds.INT64}
        schema.add_field("id", **(text if about.text_ids else number))
        schema.add_field("digest", kinds.INT64)
        schema.add_field("metadata", kinds.JSON)
        schema.add_field("code", kinds.BINARY_VECTOR, dim=-(-about.code_length // PADDED_BITS) * PADDED_BITS)
        if about.width:
            schema.add_field("vector", kinds.FLOAT16_VECTOR, dim=about.width)
        if self._asked("has_collection", self.name):
            raise InputError(f"{self.place} was not made by `deephash-pipeline export`: give another name.")
        self._create(self.name, schema, code="BIN_FLAT", **({"vector": "FLAT"} if about.width else {}))
        self.describe(about)

    def _create(self, name: str, schema: Any, **kinds: str) -> None:
        index = self._milvus.MilvusClient.prepare_index_params()
        for field, kind in kinds.items():
            index.add_index(field, index_type=kind, metric_type="COSINE" if kind == "FLAT" else "HAMMING")
        self._asked("create_collection", name, schema=schema, index_params=index, consistency_level="Strong")

    def describe(self, about: About) -> None:
        """Replace the description that the export gives of itself."""
        about = _shortened(about)
        row = {"key": 0, "about": about.to_json(), "nothing": b"\0"}
        self._asked("upsert", self.name + ABOUT_SUFFIX, [row])
        # A server takes few flushes, and has written everything to its log without one.
        if about.items is not None:
            self._asked("flush", self.name + ABOUT_SUFFIX)
            self._asked("flush", self.name)
        self.about = about

    def stored(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions, ascending, and digests of the rows that are there."""
        wanted = {"filter": "position >= 0", "output_fields": ["position", "digest"]}
        pages = self._asked("query_iterator", self.name, batch_size=POSITIONS_OF_A_QUERY, **wanted)
        found = list[tuple[int, int]]()
        while rows := pages.next():
            found += [(row["position"], row["digest"]) for row in rows]
        pages.close()
        positions, digests = np.array(sorted(found), dtype=np.int64).reshape(-1, 2).T
        return positions, digests

    def put(self, rows: Sequence[Row]) -> None:
        """Store rows, in place of those of equal positions."""
        assert self.about is not None
        pad = b"\0" * (-len(rows[0].code) % (PADDED_BITS // 8)) if rows else b""
        entities = [
            {"position": row.position, "id": row.id, "digest": row.digest}
            | {"metadata": json.loads(row.metadata), "code": row.code + pad}
            | ({"vector": row.vector} if self.about.width else {})
            for row in rows
        ]
        self._asked("upsert", self.name, entities)

    def delete(self, positions: Sequence[int]) -> None:
        """Delete the rows at some positions."""
        self._asked("delete", self.name, filter=f"position in {list(positions)}")

    def count(self) -> int:
        """Number of rows, counted by the engine."""
        (row,) = self._rows("", ["count(*)"])
        return int(row["count(*)"])

    def nearest(self, codes: NDArray[np.uint8], k: int, where: Where | None) -> list[list[Hit]]:
        """See `ExportedIndex`.

        Raises:
            InputError: k is more than Milvus answers with.
        """
        if k >= MOST_HITS:
            raise InputError(f"k is {k}, but Milvus answers with at most {MOST_HITS - 1:,} items.")
        condition = expression_of(where or {}, self.columns, self.finished.has_kind)
        pad = -codes.shape[1] % (PADDED_BITS // 8)
        vectors = [code.tobytes() for code in np.pad(codes, ((0, 0), (0, pad)))]
        found: dict[int, list[Hit]] = {}
        limit, open_queries = min(2 * k + 64, MOST_HITS), list(range(len(vectors)))
        while open_queries:
            at_once = max(1, HITS_AT_ONCE // limit)
            unsure = []
            for start in range(0, len(open_queries), at_once):
                some = open_queries[start : start + at_once]
                hits_of_some = self._hits([vectors[query] for query in some], limit, condition)
                for query, hits in zip(some, hits_of_some, strict=True):
                    if _is_sure(hits, k, limit):
                        found[query] = sorted(hits, key=_order)[:k]
                    elif limit == MOST_HITS:
                        found[query] = self._among_many_ties(vectors[query], hits, k, condition)
                    else:
                        unsure.append(query)
            open_queries, limit = unsure, min(8 * limit, MOST_HITS)
        return [found[query] for query in range(len(vectors))]

    def _among_many_ties(self, vector: bytes, hits: list[Hit], k: int, condition: str) -> list[Hit]:
        """The k nearest where more are as near as the k-th than Milvus answers with.

        Those that are nearer are among the hits. Of the others the first to be inserted are wanted: they are looked for
        among the first positions, fewer or more of them, until Milvus lists all of those that are as near.
        """
        last = sorted(hits, key=_order)[k - 1].distance
        nearer = sorted((hit for hit in hits if hit.distance < last), key=_order)
        low, high = 0, self.finished.last_position + 1
        stop = max(1, high * 2 * k // MOST_HITS)
        while True:
            before = f"position < {stop}" + (f" and ({condition})" if condition else "")
            (some,) = self._hits([vector], MOST_HITS, before)
            tied = sorted((hit for hit in some if hit.distance == last), key=_order)
            if len(some) == MOST_HITS and some[-1].distance <= last:
                high = stop
            elif len(nearer) + len(tied) >= k:
                return (nearer + tied)[:k]
            else:
                low = stop
            stop = (low + high) // 2 if high - low > 1 else high

    def _hits(self, vectors: list[bytes], limit: int, condition: str) -> list[list[Hit]]:
        wanted = {"limit": limit, "filter": condition, "output_fields": ["id"], "consistency_level": "Strong"}
        asked = self._asked("search", self.name, data=vectors, anns_field="code", search_params=EXACT, **wanted)
        return [[Hit(_key(hit), hit["entity"]["id"], int(hit["distance"])) for hit in of_query] for of_query in asked]

    def found(self, ids: Sequence[ItemId]) -> dict[ItemId, Item]:
        """Those of some items that are there."""
        length, listed = -(-self.code_length // 8), json.dumps(list(ids), ensure_ascii=False)
        rows = self._rows(f"id in {listed}", ["id", "code", "metadata"]) if ids else []
        return {row["id"]: item_of(row["id"], row["code"][0][:length], row["metadata"]) for row in rows}

    def at(self, positions: Sequence[int]) -> dict[int, ItemId]:
        """Ids of the rows at some positions, of those that are there."""
        rows = self._rows(f"position in {list(positions)}", ["position", "id"]) if positions else []
        return {row["position"]: row["id"] for row in rows}

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _rows(self, condition: str, fields: list[str], name: str | None = None) -> list[dict[str, Any]]:
        options = {"filter": condition, "output_fields": fields, "consistency_level": "Strong"}
        return list(self._asked("query", name or self.name, **options))

    def _asked(self, method: str, *arguments: Any, **options: Any) -> Any:
        try:
            return getattr(self._client, method)(*arguments, **options)
        except self._milvus.MilvusException as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> EngineError:
        reason = " ".join(str(getattr(error, "message", "") or error).split())
        return EngineError(f"{self.place} cannot be asked ({reason[:300]}); check the address and the server.")


def _shortened(about: About) -> About:
    """Leave out values, half of those of the column that is longest, until Milvus takes the rest."""
    while len(about.to_json().encode()) > LONGEST_ID and any(about.values.values()):
        longest = max(about.values, key=lambda name: len(json.dumps(about.values[name])))
        few = about.values[longest]
        about = replace(about, values={**about.values, longest: few[: len(few) // 2]})
    return about


def _key(hit: Mapping[str, Any]) -> int:
    return int(hit["id"] if "id" in hit else hit["position"])


def _order(hit: Hit) -> tuple[int, int]:
    return hit.distance, hit.position


def _is_sure(hits: list[Hit], k: int, limit: int) -> bool:
    """Whether all rows as near as the k-th are among the hits, which come by distance."""
    return len(hits) < limit or hits[-1].distance > hits[k - 1].distance


def expression_of(where: Where, columns: Sequence[str], has_kind: HasKind) -> str:
    """Translate a condition to an expression of Milvus over `metadata`.

    Args:
        where: conditions, see `HammingIndex.search`.
        columns: names of the columns that there are.
        has_kind: function that says whether a column has a value of a kind.

    Raises:
        InputError: there is no such column, it has values of another kind, or a condition has another form.

    Example:
        >>> expression_of({"label": ["a", "b"], "year": {">=": 2020}}, ["label", "year"], lambda column, kind: True)
        'metadata["label"] in ["a", "b"] and metadata["year"] >= 2020'
    """
    found = []
    for name, operator, value in named_conditions(where, columns, plain_value, has_kind):
        if value is None or (operator == IN and None in value):
            raise InputError(f"where asks for no value of {name!r}, which Milvus cannot; leave it out.")
        texts = [one for one in (value if operator == IN else [value]) if isinstance(one, str)]
        if min("".join(texts), default=" ") < " ":
            raise InputError(f"where has {value!r} for {name!r}, but Milvus compares no control characters.")
        column, wanted = (json.dumps(part, ensure_ascii=False) for part in (name, value))
        compared = "==" if operator == EQUALS else operator
        found.append("position < 0" if value == [] else f"metadata[{column}] {compared} {wanted}")
    return " and ".join(found)
