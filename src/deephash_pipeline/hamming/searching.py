"""Answers of an index: exact searches by codes, by ids and within a radius, pairs and groups."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.own_settings import own_settings
from deephash_pipeline.hamming.answers import Answers, ItemId, RangeAnswers
from deephash_pipeline.hamming.codes import Codes
from deephash_pipeline.hamming.conditions import Where, parsed
from deephash_pipeline.hamming.ids import MISSING, checked_ids
from deephash_pipeline.hamming.kernels.least import least
from deephash_pipeline.hamming.pairs import NearPairs, codes_at, connected, near_items, near_rows
from deephash_pipeline.hamming.ranking import nearest_rows, rows_within
from deephash_pipeline.hamming.reading import ReadableIndex
from deephash_pipeline.hamming.reranking import Reranking, scores_of
from deephash_pipeline.hamming.snapshots import Snapshot
from deephash_pipeline.retrieval.codes import check_codes, check_count, code_words


class ExactSearch(ReadableIndex):
    """An index whose items are found by their codes.

    Args:
        store: store that the index consists of.

    Example:
        >>> from deephash_pipeline.hamming import HammingIndex
        >>> index = HammingIndex(8)
        >>> codes = np.array([[0], [1], [255]], dtype=np.uint8)
        >>> index.add(["a", "b", "c"], codes)
        >>> index.search(codes[:1], k=2)[0], index.search_by_id("a", k=1)[0]
        ([('a', 0), ('b', 1)], [('b', 1)])
        >>> index.within(codes[:2], radius=1)[1]
        [('b', 0), ('a', 1)]
    """

    approximate = False

    @own_settings()
    def search(
        self, codes: NDArray[np.uint8], k: int, where: Where | None = None, rerank: Reranking | None = None
    ) -> Answers:
        """Find the k nearest items of every query.

        Args:
            codes: packed codes of the queries, uint8 (queries, ceil(code_length / 8)).
            k: number of items, at least 1; fewer are found if fewer items match.
            where: conditions on metadata, all of which must hold: ``{"label": 3}`` equals, or is a list that has it;
                ``{"label": [3, 5]}`` is one of, ``{"year": {">=": 2020}}`` compares, None stands for no value; the
                operators are <, <=, >, >=, !=, in, not in and prefix. ``{"$or": [{...}, {...}]}``, ``"$and"`` and
                ``{"$not": {...}}`` join conditions, ``{"$id": [7, 8]}`` has ids.
            rerank: order that a longer list is brought into before it is cut to k, by features or outputs.

        Raises:
            InputError: if an argument has another form, or a column is unknown.
        """
        return self.found(self._words(codes, "codes"), check_count(k, "k"), where, rerank)

    def found(self, queries: NDArray[np.uint64], k: int, where: Where | None, rerank: Reranking | None) -> Answers:
        """What `search` finds, for those who compute under `own_settings` already and have looked at what they ask.

        Args:
            queries: codes, uint64 (queries, words), see `code_words`.
            k: number of items.
            where: conditions.
            rerank: order that a longer list is brought into.
        """
        shortlist = k if rerank is None else max(k, check_count(rerank.shortlist, "shortlist"))
        snapshot, parts = self._searched(where)
        rows, distances = nearest_rows(queries, parts, self.code_length, shortlist)
        if rerank is None:
            return Answers(snapshot.ids_of(rows), distances)
        scores = scores_of(snapshot, rows, rerank, self.code_length, self.features)
        order = np.arange(len(queries))[:, np.newaxis], least(scores, k)
        return Answers(snapshot.ids_of(rows[order]), distances[order], scores[order])

    @own_settings()
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
        starts, rows, distances = rows_within(queries, parts, self.code_length, radius)
        return RangeAnswers(starts, snapshot.ids_of(rows), distances)

    def pairs(self, radius: int, against: ReadableIndex | None = None) -> Iterator[NearPairs]:
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

    def _words(self, codes: NDArray[np.uint8], name: str) -> NDArray[np.uint64]:
        """Packed codes as uint64 (codes, words)."""
        return code_words(check_codes(codes, self.code_length, name))

    def _searched(self, where: Where | None) -> tuple[Snapshot, list[Codes]]:
        """The present state, and its parts as far as conditions hold."""
        if where is None:
            snapshot = self._store.current()
            return snapshot, snapshot.codes
        with self._store.lock:
            while True:
                snapshot = self._store.current()
                if not snapshot.columns:
                    snapshot.columns.extend(self._store.ledger.columns())
                condition = parsed(where, snapshot.columns)
                if condition in snapshot.searched:
                    return snapshot, snapshot.searched[condition]
                holds = self._columns.holds(condition, partial(self._positions_of_some, snapshot))
                # Merging forgets the metadata of removed items: those of this snapshot would seem to have none.
                if not self._store.merged_since(snapshot):
                    return snapshot, snapshot.codes_where(condition, holds)

    def _positions_of_some(self, snapshot: Snapshot, ids: tuple[ItemId, ...]) -> NDArray[np.int64]:
        """Positions of items of some ids, of those that there are."""
        checked, _ = checked_ids(ids, self._store.kind, different=False)
        rows = snapshot.find(checked)
        return snapshot.positions_of(rows[rows != MISSING])
