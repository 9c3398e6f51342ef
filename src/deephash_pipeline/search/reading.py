"""What an index answers: searches by codes, by ids and within a radius, items, and what there is."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval.codes import check_codes, check_count, code_words
from deephash_pipeline.search.answers import Answers, GivenIds, Item, ItemId, RangeAnswers
from deephash_pipeline.search.filters import SQLITE_TYPES, Conditions, Where, condition_of
from deephash_pipeline.search.ids import INTEGER, MISSING, checked_ids
from deephash_pipeline.search.pairs import NearPairs, codes_at, connected, near_items, near_rows
from deephash_pipeline.search.parts import SearchedPart
from deephash_pipeline.search.ranking import nearest_rows, rows_within
from deephash_pipeline.search.reranking import Reranking, scores_of
from deephash_pipeline.search.snapshots import Snapshot
from deephash_pipeline.search.store import MADE_BY, Store, identity_of

ROWS_AT_ONCE = 65_536


class ReadableIndex:
    """The questions that can be asked of an index.

    Args:
        store: store that the index consists of.

    Example:
        >>> from deephash_pipeline.search import HammingIndex
        >>> index = HammingIndex(8)
        >>> codes = np.array([[0], [1], [255]], dtype=np.uint8)
        >>> index.add(["a", "b", "c"], codes, {"label": ["cat", "cat", "dog"]})
        >>> index.search(codes[:1], k=2)[0], index.search_by_id("a", k=1)[0]
        ([('a', 0), ('b', 1)], [('b', 1)])
        >>> index.within(codes[:2], radius=1)[1]
        [('b', 0), ('a', 1)]
        >>> index.get("c").code, index.metadata(["b"]), index.values("label")
        (array([255], dtype=uint8), [{'label': 'cat'}], ['cat', 'dog'])
        >>> [item.id for item in index.items(["c", "a"])], sorted(index.sample(5, seed=0)), index.info()["items"]
        (['c', 'a'], ['a', 'b', 'c'], 3)
    """

    approximate = False

    def __init__(self, store: Store) -> None:
        self._store = store
        self._conditions = Conditions(store.ledger)

    @property
    def code_length(self) -> int:
        """Bits per code."""
        return self._store.code_length

    @property
    def read_only(self) -> bool:
        """Whether changes are refused."""
        return self._store.read_only

    @property
    def is_replaced(self) -> bool:
        """Whether another index has taken its place in the folder; this one goes on with what it had."""
        there = identity_of(self._store.folder)
        return self.read_only and there not in (None, self._store.identity)

    @property
    def made_by(self) -> str | None:
        """The digest of what makes its codes, see `HammingIndex.mark`; None where that is not known."""
        with self._store.lock:
            found: str | None = self._store.ledger.settings().get(MADE_BY)
            return found

    @property
    def features(self) -> int:
        """Numbers in the features of an item, 0 for none."""
        return self._store.form.width

    @property
    def integer_ids(self) -> bool:
        """Whether ids are integers; they are, while there is none."""
        return self._store.kind in (None, INTEGER)

    @property
    def columns(self) -> list[str]:
        """Names of the columns of metadata."""
        with self._store.lock:
            return self._store.ledger.columns()

    def info(self) -> dict[str, Any]:
        """What there is: items, removed ones that are still stored, segments and their distinct codes, bytes."""
        snapshot = self._store.current()
        return {
            "items": snapshot.count,
            "removed": sum(source.removed for source in snapshot.sources),
            "code_length": self.code_length,
            "features": self.features,
            "feature_type": self._store.form.kind if self.features else None,
            "columns": self.columns,
            "segments": len(snapshot.sources) - 1,
            "distinct_codes": [source.items.groups.codes for source in snapshot.sources[:-1]],
            "tail": snapshot.sources[-1].items.size,
            "bytes_on_disk": self._store.bytes_on_disk(),
        }

    def __len__(self) -> int:
        """Number of items."""
        return self._store.current().count

    def __iter__(self) -> Iterator[ItemId]:
        """Ids in the order of insertion, as they are when the iteration begins."""
        snapshot = self._store.current()
        rows = snapshot.rows()
        for start in range(0, len(rows), ROWS_AT_ONCE):
            yield from snapshot.ids_of(rows[start : start + ROWS_AT_ONCE]).tolist()

    def batches(self, size: int) -> Iterator[tuple[NDArray[np.int64], list[Item], NDArray[np.float32]]]:
        """Positions, ascending, items and their features, so many at a time, as they are when the iteration begins.

        A position is the number of an item in the order of insertion; another item never gets it.

        Raises:
            InputError: if items that were removed meanwhile have been forgotten, with their metadata.
        """
        snapshot = self._store.current()
        rows = snapshot.rows()
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            features = snapshot.features_of(some)
            yield snapshot.positions_of(some), self._items_at(snapshot, some), features

    def __contains__(self, item_id: object) -> bool:
        """Whether there is an item of this id."""
        try:
            return bool(self._rows([item_id])[1][0] != MISSING)  # type: ignore[list-item]
        except InputError:
            return False

    def search(
        self, codes: NDArray[np.uint8], k: int, where: Where | None = None, rerank: Reranking | None = None
    ) -> Answers:
        """Find the k nearest items of every query.

        Args:
            codes: packed codes of the queries, uint8 (queries, ceil(code_length / 8)).
            k: number of items, at least 1; fewer are found if fewer items match.
            where: conditions on metadata, all of which must hold: ``{"label": 3}`` equals, ``{"label": [3, 5]}`` is one
                of, ``{"year": {">=": 2020}}`` compares, None stands for no value.
            rerank: order that a longer list is brought into, `ByFeatures` or `ByOutputs`, before it is cut to k.

        Raises:
            InputError: if an argument has another form, or a column is unknown.
        """
        queries = self._words(codes, "codes")
        k = check_count(k, "k")
        shortlist = k if rerank is None else max(k, check_count(rerank.shortlist, "shortlist"))
        snapshot, parts = self._searched(where)
        rows, distances = nearest_rows(queries, parts, self.code_length, shortlist)
        if rerank is None:
            return Answers(snapshot.ids_of(rows), distances)
        scores = scores_of(snapshot, rows, rerank, self.code_length, self.features)
        order = np.argsort(scores, axis=1, kind="stable")[:, :k]
        rows, distances = np.take_along_axis(rows, order, axis=1), np.take_along_axis(distances, order, axis=1)
        scores = np.take_along_axis(scores, order, axis=1)
        return Answers(snapshot.ids_of(rows), distances, scores)

    def candidates(
        self, codes: NDArray[np.uint8], count: int, rerank: Reranking | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The items with the nearest codes of every query, and what a re-ranking orders them by, to look into both.

        Args:
            codes: codes, see `search`.
            count: number of items for each query.
            rerank: scores by it; by distance if None.

        Returns:
            Positions, int64, by (distance, insertion), and scores, float32, both (queries, min(count, items)).
        """
        snapshot, parts = self._searched(None)
        rows, distances = nearest_rows(self._words(codes, "codes"), parts, self.code_length, count)
        if rerank is None:
            return snapshot.positions_of(rows), distances.astype(np.float32)
        return snapshot.positions_of(rows), scores_of(snapshot, rows, rerank, self.code_length, self.features)

    def search_by_id(self, item_id: ItemId, k: int, where: Where | None = None) -> Answers:
        """Find the k items nearest to one of the index, without that one; the answers to one query.

        Raises:
            InputError: if there is no such item, or an argument has another form.
        """
        k = check_count(k, "k")
        with self._store.lock:
            snapshot, parts = self._searched(where)
            _, rows = self._known_rows([item_id], snapshot)
        query = snapshot.words_of(rows)
        found, distances = nearest_rows(query, parts, self.code_length, k + 1)
        others = np.flatnonzero(found[0] != rows[0])[:k]
        return Answers(snapshot.ids_of(found[:, others]), distances[:, others])

    def within(self, codes: NDArray[np.uint8], radius: int, where: Where | None = None) -> RangeAnswers:
        """Find all items at most `radius` bits from each query.

        Args:
            codes: packed codes of the queries, uint8 (queries, ceil(code_length / 8)).
            radius: the largest distance that counts, at least 0.
            where: conditions, see `search`.

        Raises:
            InputError: if an argument has another form, or a column is unknown.
        """
        queries = self._words(codes, "codes")
        radius = min(check_count(radius, "radius", least=0), self.code_length)
        snapshot, parts = self._searched(where)
        starts, rows, distances = rows_within(queries, parts, radius)
        return RangeAnswers(starts, snapshot.ids_of(rows), distances)

    def pairs(self, radius: int, against: "ReadableIndex | None" = None) -> Iterator[NearPairs]:
        """Find all pairs of items at most `radius` bits apart, exactly.

        Args:
            radius: the largest distance that counts, at least 0.
            against: another index of codes as long; pairs are then of an item of this one and one of that.

        Returns:
            Pairs in the order of (first item, second item) as they were added, a block after another, as both indexes
            are now. The memory that is used does not grow with the number of pairs.

        Raises:
            InputError: if the radius is out of range, or the codes differ in length.
        """
        radius = check_count(radius, "radius", least=0)
        if against is not None and against.code_length != self.code_length:
            raise InputError(f"codes have {self.code_length} and {against.code_length} bits; give an index of as many.")
        other = None if against is None else against._store.current()
        return near_items(self._store.current(), other, self.code_length, radius)

    def groups(self, radius: int) -> list[list[ItemId]]:
        """Find the groups of two or more items that are connected by pairs at most `radius` bits apart.

        Raises:
            InputError: if the radius is out of range.
        """
        snapshot = self._store.current()
        rows = snapshot.rows()
        pairs = near_rows(codes_at(snapshot, rows), self.code_length, check_count(radius, "radius", least=0))
        return [snapshot.ids_of(rows[group]).tolist() for group in connected(pairs, len(rows))]

    def get(self, item_id: ItemId) -> Item:
        """One item: code and metadata.

        Raises:
            InputError: if there is no such item.
        """
        return self.items([item_id])[0]

    def items(self, ids: GivenIds) -> list[Item]:
        """Codes and metadata of some items.

        Raises:
            InputError: if one of them is not there.
        """
        ids = list(ids)
        if not ids:
            return []
        return self._items_at(*self._known_rows(ids))

    def _items_at(self, snapshot: Snapshot, rows: NDArray[np.int64]) -> list[Item]:
        ids = snapshot.ids_of(rows).tolist()
        words = np.ascontiguousarray(snapshot.words_of(rows)).astype("<u8")
        codes = words.view(np.uint8)[:, : -(-self.code_length // 8)]
        return list(map(Item, ids, codes, self._metadata_at(snapshot, rows)))

    def sample(self, count: int, seed: int) -> list[ItemId]:
        """Ids of some items drawn at random, or of all; equal seeds draw equal items of equal indexes."""
        snapshot = self._store.current()
        rows = snapshot.rows()
        drawn = np.random.default_rng(seed).choice(rows, min(check_count(count, "count"), len(rows)), replace=False)
        ids: list[ItemId] = snapshot.ids_of(drawn).tolist()
        return ids

    def values(self, column: str, most: int = 1000) -> list[Any]:
        """Distinct values of a column of metadata, ascending, at most so many; also of items removed lately.

        Raises:
            InputError: if there is no such column.
        """
        if column not in self.columns:
            raise InputError(f"there is no column {column!r}; columns are: {', '.join(self.columns) or 'none'}.")
        with self._store.lock:
            return self._store.ledger.values(column, check_count(most, "most"))

    def kinds(self, column: str) -> list[str]:
        """What a column of metadata has: `numbers`, `text`, `bytes`."""
        with self._store.lock:
            return [kind for kind in SQLITE_TYPES if self._conditions.has_kind(column, kind)]

    def metadata(self, ids: GivenIds) -> list[dict[str, Any]]:
        """Metadata of some items, by column and without empty values.

        Raises:
            InputError: if one of them is not there.
        """
        snapshot, rows = self._known_rows(list(ids))
        return self._metadata_at(snapshot, rows)

    def features_of(self, ids: GivenIds) -> NDArray[np.float32]:
        """Features of some items as they are stored, float32 (items, features).

        Raises:
            InputError: if one of them is not there.
        """
        snapshot, rows = self._known_rows(list(ids))
        return snapshot.features_of(rows)

    def _words(self, codes: NDArray[np.uint8], name: str) -> NDArray[np.uint64]:
        """Packed codes as uint64 (codes, words)."""
        return code_words(check_codes(codes, self.code_length, name))

    def _searched(self, where: Where | None) -> tuple[Snapshot, list[SearchedPart]]:
        """The present state, and its parts as far as conditions hold."""
        if where is None:
            snapshot = self._store.current()
            return snapshot, snapshot.parts
        with self._store.lock:
            while True:
                snapshot = self._store.current()
                if not snapshot.columns:
                    snapshot.columns.extend(self._store.ledger.columns())
                condition = condition_of(where, snapshot.columns, self._conditions.has_kind)
                if condition in snapshot.searched:
                    return snapshot, snapshot.searched[condition]
                positions = self._conditions.positions(condition)
                # Merging forgets the metadata of removed items: those of this snapshot would seem to have none.
                if not self._store.merged_since(snapshot):
                    return snapshot, snapshot.parts_at(condition, positions)

    def _rows(self, ids: GivenIds, snapshot: Snapshot | None = None) -> tuple[Snapshot, NDArray[np.int64]]:
        """The row of each id, MISSING for one that is not there, and the snapshot they are rows of."""
        with self._store.lock:
            snapshot = self._store.current() if snapshot is None else snapshot
            checked, _ = checked_ids(ids, self._store.kind)
            return snapshot, snapshot.find(checked)

    def _known_rows(self, ids: GivenIds, snapshot: Snapshot | None = None) -> tuple[Snapshot, NDArray[np.int64]]:
        snapshot, rows = self._rows(ids, snapshot)
        if np.any(rows == MISSING):
            first = list(ids)[int(np.flatnonzero(rows == MISSING)[0])]
            raise InputError(f"id {first!r} is not in the index; give ids of items that are.")
        return snapshot, rows

    def _metadata_at(self, snapshot: Snapshot, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        with self._store.lock:
            positions = snapshot.positions_of(rows)
            metadata = self._store.ledger.metadata(positions.tolist())
            if not all(metadata) and self._store.merged_since(snapshot):
                present = self._store.current()
                empty = positions[[not values for values in metadata]]
                if not np.isin(empty, present.positions_of(present.rows())).all():
                    raise InputError(
                        f"{self._store.folder or 'the index'} has forgotten items that were removed while they were "
                        "being read; read them again while nothing removes any."
                    )
            return metadata
