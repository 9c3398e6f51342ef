"""Ids of the items of a segment, in their order, and how an item is found by its id."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.answers import Ids, ItemId
from deephash_pipeline.hamming.growing import with_room
from deephash_pipeline.hamming.ids import MISSING
from deephash_pipeline.hamming.kernels.halving import places_in_order


@dataclass(frozen=True, eq=False)
class IntegerIds:
    """Ids that are integers.

    Attributes:
        values: int64 (items,).
        order: uint32 (items,), the rows in the order of their ids.

    Example:
        >>> ids = IntegerIds(np.array([7, 3]), order=np.array([1, 0], dtype=np.uint32))
        >>> ids.find(np.array([3, 4])), ids.take(np.array([0]))
        (array([ 1, -1]), array([7]))
    """

    values: NDArray[np.int64]
    order: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: NDArray[np.integer[Any]]) -> Ids:
        """Ids of some rows, of the same shape as `rows`."""
        ids: Ids = self.values[rows]
        return ids

    def find(self, ids: Ids) -> NDArray[np.int64]:
        """Row of each id, int64, MISSING for an id that is not there."""
        if not len(self.values):
            return np.full(len(ids), MISSING, dtype=np.int64)
        places = np.minimum(places_in_order(self.values, self.order, ids), len(self.order) - 1)
        rows = self.order[places].astype(np.int64)
        return np.where(self.values[rows] == ids, rows, MISSING)

    def largest(self) -> int:
        """The largest id."""
        return int(self.values[self.order[-1]])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays that the file of a segment stores, by name."""
        return {"ids": self.values, "id_order": self.order}


@dataclass(frozen=True)
class ConsecutiveIds:
    """Ids that are integers, each one more than the one before: row numbers, most often.

    Attributes:
        first: the first id.
        count: number of ids.

    Example:
        >>> ids = ConsecutiveIds(first=10, count=3)
        >>> ids.find(np.array([12, 13])), ids.take(np.array([0]))
        (array([ 2, -1]), array([10]))
    """

    first: int
    count: int

    def __len__(self) -> int:
        return self.count

    def take(self, rows: NDArray[np.integer[Any]]) -> Ids:
        """Ids of some rows."""
        ids: Ids = np.add(rows, self.first, dtype=np.int64)
        return ids

    def find(self, ids: Ids) -> NDArray[np.int64]:
        """Row of each id, int64, MISSING for an id that is not there."""
        there = (ids >= self.first) & (ids <= self.first + self.count - 1)
        rows = np.full(len(ids), MISSING, dtype=np.int64)
        # Only those that are there: the difference of others may not fit into 64 bits.
        rows[there] = ids[there] - self.first
        return rows

    def largest(self) -> int:
        """The largest id."""
        return self.first + self.count - 1

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays that the file of a segment stores, by name."""
        return {"consecutive_ids": np.array([self.first, self.count], dtype=np.int64)}


@dataclass(frozen=True, eq=False)
class TextIds:
    """Ids that are strings, found by their hashes.

    Attributes:
        text: all ids in UTF-8, one after the other, uint8.
        starts: int64 (items + 1,), where each begins.
        hashes: uint64 (items,).
        order: uint32 (items,), the rows in the order of their hashes.
    """

    text: NDArray[np.uint8]
    starts: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    order: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.hashes)

    def take(self, rows: NDArray[np.integer[Any]]) -> Ids:
        """Ids of some rows."""
        taken = np.empty(rows.size, dtype=object)
        taken[:] = [self._text_of(row) for row in rows.ravel().tolist()]
        return taken.reshape(rows.shape)

    def find(self, ids: Ids) -> NDArray[np.int64]:
        """Row of each id, int64, MISSING for an id that is not there."""
        wanted = hashes_of(ids)
        places = places_in_order(self.hashes, self.order, wanted).tolist()
        found = [self._from(place, key, text) for place, key, text in zip(places, wanted, ids, strict=True)]
        return np.array(found, dtype=np.int64)

    def _from(self, place: int, key: np.uint64, text: str) -> int:
        """The row of an id among those with its hash, the first of which is at a place in the order."""
        while place < len(self.order) and self.hashes[self.order[place]] == key:
            row = int(self.order[place])
            if self._text_of(row) == text:
                return row
            place += 1
        return MISSING

    def _text_of(self, row: int) -> str:
        return self.text[self.starts[row] : self.starts[row + 1]].tobytes().decode()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays that the file of a segment stores, by name."""
        return {"text_ids": self.text, "text_starts": self.starts, "text_hashes": self.hashes, "id_order": self.order}


@dataclass(frozen=True, eq=False)
class TailIds:
    """Ids of items that are not in a file yet, of either kind; they only become more.

    Attributes:
        values: int64 (items or more,), or object holding `str`.
        rows: row of every id, also of those that have been added since: of an id that is there twice, the newest.
        count: number of ids.

    Example:
        >>> ids = TailIds(np.empty(0, dtype=np.int64), {}, 0).extended(np.array([7, 3]))
        >>> ids.find(np.array([3, 4])), ids.take(np.array([0]))
        (array([ 1, -1]), array([7]))
    """

    values: Ids
    rows: dict[ItemId, int]
    count: int

    def __len__(self) -> int:
        return self.count

    def take(self, rows: NDArray[np.integer[Any]]) -> Ids:
        """Ids of some rows, of the same shape as `rows`."""
        ids: Ids = self.values[rows]
        return ids

    def find(self, ids: Ids) -> NDArray[np.int64]:
        """Row of each id, int64, MISSING for an id that is not there."""
        rows = np.array([self.rows.get(value, MISSING) for value in ids.tolist()], dtype=np.int64)
        return np.where(rows < self.count, rows, MISSING)

    def largest(self) -> int:
        """The largest id."""
        return int(self.values[: self.count].max())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays that the file of a segment stores, by name."""
        return id_column(self.values[: self.count]).arrays()

    def extended(self, ids: Ids) -> "TailIds":
        """These and others after them."""
        stop = self.count + len(ids)
        values = with_room(self.values, self.count, stop)
        values[self.count : stop] = ids
        self.rows.update(zip(ids.tolist(), range(self.count, stop), strict=True))
        return TailIds(values, self.rows, stop)


IdColumn = IntegerIds | ConsecutiveIds | TextIds | TailIds
"""The ids of the items of a segment, in their order."""


def hashes_of(ids: Iterable[str]) -> NDArray[np.uint64]:
    """64-bit hashes of strings, the same on every machine and in every run."""
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in ids)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def id_column(ids: Ids) -> IdColumn:
    """Make the column of ids that are all different: int64 (items,), or object (items,) holding `str`."""
    if ids.dtype == np.int64:
        if int(ids[-1]) - int(ids[0]) == len(ids) - 1 and np.all(ids[1:] > ids[:-1]):
            return ConsecutiveIds(int(ids[0]), len(ids))
        return IntegerIds(ids, np.argsort(ids, kind="stable").astype(np.uint32))
    encoded = [text.encode() for text in ids]
    starts = np.zeros(len(ids) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=starts[1:])
    hashes = hashes_of(ids)
    order = np.argsort(hashes, kind="stable").astype(np.uint32)
    return TextIds(np.frombuffer(b"".join(encoded), dtype=np.uint8), starts, hashes, order)


def column_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> IdColumn:
    """Undo `arrays` of a column."""
    if "consecutive_ids" in arrays:
        return ConsecutiveIds(*arrays["consecutive_ids"].tolist())
    if "ids" in arrays:
        return IntegerIds(arrays["ids"], arrays["id_order"])
    return TextIds(arrays["text_ids"], arrays["text_starts"], arrays["text_hashes"], arrays["id_order"])
