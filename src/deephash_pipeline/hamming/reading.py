"""Contents of an index: items with their codes, metadata and features, and their number."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.folders import INDEX_FILE
from deephash_pipeline.hamming.answers import GivenIds, Ids, Item, ItemId
from deephash_pipeline.hamming.columns import Columns
from deephash_pipeline.hamming.database import identity_of
from deephash_pipeline.hamming.filters import KINDS
from deephash_pipeline.hamming.ids import INTEGER, MISSING, checked_ids
from deephash_pipeline.hamming.snapshots import Snapshot
from deephash_pipeline.hamming.store import MADE_BY, Store
from deephash_pipeline.retrieval.codes import check_count

READ_AT_ONCE = 65_536


class ReadableIndex:
    """Items of an index, as they are stored.

    Args:
        store: store that the index consists of.

    Example:
        >>> from deephash_pipeline.hamming import HammingIndex
        >>> index = HammingIndex(8)
        >>> index.add(["a", "b", "c"], np.array([[0], [1], [255]], dtype=np.uint8), {"label": ["cat", "cat", "dog"]})
        >>> index.get("c").code, index.metadata(["b"]), index.values("label")
        (array([255], dtype=uint8), [{'label': 'cat'}], ['cat', 'dog'])
        >>> [item.id for item in index.items(["c", "a"])], sorted(index.sample(5, seed=0)), index.info()["items"]
        (['c', 'a'], ['a', 'b', 'c'], 3)
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._columns = Columns(store.ledger)

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
        folder = self._store.folder
        there = None if folder is None else identity_of(folder / INDEX_FILE)
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
            "removed": sum(segment.removed for segment in snapshot.segments),
            "code_length": self.code_length,
            "features": self.features,
            "feature_type": self._store.form.kind if self.features else None,
            "columns": self.columns,
            "segments": len(snapshot.segments) - 1,
            "distinct_codes": [codes.distinct for codes in snapshot.codes[:-1]],
            "tail": snapshot.tail.size,
            "bytes_on_disk": self._store.bytes_on_disk(),
        }

    def ids(self) -> Ids:
        """All ids in the order of insertion, int64 or object holding `str`, (items,)."""
        snapshot = self._store.current()
        return snapshot.ids_of(snapshot.rows())

    def __len__(self) -> int:
        """Number of items."""
        return self._store.current().count

    def __iter__(self) -> Iterator[ItemId]:
        """Ids in the order of insertion, as they are when the iteration begins."""
        snapshot = self._store.current()
        rows = snapshot.rows()
        for start in range(0, len(rows), READ_AT_ONCE):
            yield from snapshot.ids_of(rows[start : start + READ_AT_ONCE]).tolist()

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
        snapshot = self._store.current()
        try:
            return bool(self._rows([item_id], snapshot)[1][0] != MISSING)  # type: ignore[list-item]
        except InputError:
            return False

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
        self._require_column(column)
        with self._store.lock:
            return self._store.ledger.values(column, check_count(most, "most"))

    def column(self, name: str) -> dict[ItemId, Any]:
        """The values of one column of metadata by id, None for none; what was read before is not read again.

        Raises:
            InputError: if there is no such column.
        """
        self._require_column(name)
        with self._store.lock:
            snapshot = self._store.current()
            rows = snapshot.rows()
            values = self._columns.values_at(name, snapshot.positions_of(rows))
            return dict(zip(snapshot.ids_of(rows).tolist(), values, strict=True))

    def _require_column(self, name: str) -> None:
        if name not in self.columns:
            raise InputError(f"there is no column {name!r}; columns are: {', '.join(self.columns) or 'none'}.")

    def keep_columns(self) -> None:
        """Write files of large columns of metadata, so that the first condition after opening takes no longer."""
        with self._store.lock:
            self._columns.keep(self._store.ledger.columns())

    def kinds(self, column: str) -> list[str]:
        """What a column of metadata has: `numbers`, `text`, `bytes`, `tags`."""
        with self._store.lock:
            return [kind for kind in KINDS if self._columns.has_kind(column, kind)]

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

    def mean_features(self, most: int) -> NDArray[np.float32]:
        """The mean of the features of all items, or of so many that are spread over them, float32 (features,)."""
        snapshot = self._store.current()
        rows = snapshot.rows()
        mean: NDArray[np.float32] = snapshot.features_of(rows[:: -(-len(rows) // most) or 1]).mean(axis=0)
        return mean

    def _rows(self, ids: GivenIds, snapshot: Snapshot | None = None) -> tuple[Snapshot, NDArray[np.int64]]:
        """The row of each id, MISSING for one that is not there, and the snapshot they are rows of."""
        with self._store.lock:
            snapshot = self._store.current() if snapshot is None else snapshot
            checked, _ = checked_ids(ids, self._store.kind, different=False)
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
