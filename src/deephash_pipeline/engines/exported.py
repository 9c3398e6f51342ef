"""Shared by PostgreSQL and Milvus: an export that is written, and one that is searched."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.engines.rows import About, Row
from deephash_pipeline.hamming import Answers, Item, ItemId, Searchable
from deephash_pipeline.hamming.answers import GivenIds
from deephash_pipeline.hamming.conditions import Where
from deephash_pipeline.hamming.searchable import Closing
from deephash_pipeline.retrieval.codes import check_codes, check_count


class EngineError(InputError):
    """Another engine does not answer, or not as it should."""


DRAWS = 8


class Hit(NamedTuple):
    """A row that a search has found."""

    position: int
    id: ItemId
    distance: int


class ExportedIndex(Closing, Searchable):
    """Codes that `export_index` has written into another engine, with the questions of a `HammingIndex`.

    Attributes:
        about: facts that the export says of itself; None if there is none yet.
        place: name of the export in messages, without a password.
    """

    about: About | None
    place: str
    approximate = False

    # Written by an export.

    @abstractmethod
    def create(self, about: About) -> None:
        """Make what is to store the rows."""

    @abstractmethod
    def describe(self, about: About) -> None:
        """Replace what the export says of itself."""

    @abstractmethod
    def stored(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions, ascending, and digests of the rows that are there."""

    @abstractmethod
    def put(self, rows: Sequence[Row]) -> None:
        """Store rows, in place of those of equal positions, durably."""

    @abstractmethod
    def delete(self, positions: Sequence[int]) -> None:
        """Delete the rows at some positions."""

    @abstractmethod
    def count(self) -> int:
        """Number of rows, counted by the engine."""

    # Asked by a search.

    @abstractmethod
    def nearest(self, codes: NDArray[np.uint8], k: int, where: Where | None) -> list[list[Hit]]:
        """The k nearest rows of each query, in the order of (distance, position)."""

    @abstractmethod
    def at(self, positions: Sequence[int]) -> dict[int, ItemId]:
        """Ids of the rows at some positions, of those that are there."""

    @abstractmethod
    def found(self, ids: Sequence[ItemId]) -> dict[ItemId, Item]:
        """Those of some items that are there."""

    @property
    def finished(self) -> About:
        """What the export says of itself, once it has come to its end.

        Raises:
            InputError: there is no export, or it was broken off.
        """
        if self.about is None:
            raise InputError(f"{self.place} is not there: make it by `deephash-pipeline export`.")
        if self.about.items is None:
            raise InputError(f"{self.place} is an export that was broken off: run `deephash-pipeline export` again.")
        return self.about

    @property
    def code_length(self) -> int:
        """Bits per code."""
        return self.finished.code_length

    @property
    def columns(self) -> list[str]:
        """Names of the columns of metadata."""
        return self.finished.columns

    @property
    def made_by(self) -> str | None:
        """Digest of the hasher that makes its codes; None where that is not known."""
        return self.finished.made_by

    def __len__(self) -> int:
        """Number of items, when the export ended."""
        return self.finished.items or 0

    def search(self, codes: NDArray[np.uint8], k: int, where: Where | None = None) -> Answers:
        """Find the k nearest items of every query; see `HammingIndex.search`.

        Raises:
            InputError: an argument has another form, or the engine does not answer.
        """
        queries = check_codes(codes, self.code_length)
        hits = self.nearest(queries, check_count(k, "k"), where)
        return self._answers(hits)

    def __contains__(self, item_id: object) -> bool:
        """Whether there is an item of this id."""
        return isinstance(item_id, str if self.finished.text_ids else int) and item_id in self.found([item_id])

    def search_by_id(self, item_id: ItemId, k: int, where: Where | None = None) -> Answers:
        """Find the k items nearest to one of the index, without that one; see `HammingIndex.search_by_id`.

        Raises:
            InputError: there is no such item, or the engine does not answer.
        """
        code = self.get(item_id).code[np.newaxis]
        return self.search(code, check_count(k, "k") + 1, where).without(item_id, k)

    def items(self, ids: GivenIds) -> list[Item]:
        """Codes and metadata of some items.

        Raises:
            InputError: one of them is not there.
        """
        wanted: list[ItemId] = [item_id.item() if isinstance(item_id, np.generic) else item_id for item_id in ids]
        kind = str if self.finished.text_ids else int
        there = self.found([item_id for item_id in wanted if isinstance(item_id, kind)])
        for item_id in wanted:
            if item_id not in there:
                raise InputError(f"id {item_id!r} is not in {self.place}; give ids of items that are.")
        return [there[item_id] for item_id in wanted]

    def sample(self, count: int, seed: int) -> list[ItemId]:
        """Ids of some items drawn at random, or of all; equal seeds draw equal items of equal exports."""
        wanted = min(check_count(count, "count"), len(self))
        rng, drawn = np.random.default_rng(seed), dict[int, ItemId]()
        positions = self.finished.last_position + 1
        # Positions of removed items are empty, so more are drawn than wanted.
        for _ in range(DRAWS):
            if len(drawn) >= wanted:
                break
            some = np.unique(rng.integers(0, positions, min(positions, 2 * wanted))).tolist()
            there = self.at([position for position in some if position not in drawn])
            drawn |= {position: there[position] for position in rng.permutation(sorted(there)).tolist()}
        return list(drawn.values())[:wanted]

    def values(self, column: str, most: int = 1000) -> list[Any]:
        """Distinct values of a column of metadata, ascending, as they were when the export ended.

        They are the first thousand, in Milvus fewer where they are long.

        Raises:
            InputError: there is no such column, or an earlier version has exported it without values.
        """
        if column not in self.finished.values:
            if column in self.columns:
                raise InputError(f"{self.place} has no values of {column!r}: run `deephash-pipeline export` again.")
            raise InputError(f"there is no column {column!r}; columns are: {', '.join(self.columns) or 'none'}.")
        return self.finished.values[column][: check_count(most, "most")]

    def info(self) -> dict[str, Any]:
        """What there is."""
        return {"items": len(self), "code_length": self.code_length, "columns": self.columns, "place": self.place}

    def _answers(self, hits: list[list[Hit]]) -> Answers:
        found = min(map(len, hits), default=0)
        ids = np.empty((len(hits), found), dtype=object if self.finished.text_ids else np.int64)
        distances = np.empty((len(hits), found), dtype=np.int32)
        for query, of_query in enumerate(hits):
            for place, hit in enumerate(of_query[:found]):
                ids[query, place], distances[query, place] = hit.id, hit.distance
        return Answers(ids, distances)
