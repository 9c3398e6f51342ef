"""Ids of items: 64-bit integers or strings, one kind in an index, and how to find an item by them."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming.answers import GivenIds, Ids
from deephash_pipeline.hamming.kernels.halving import places_in_order

INTEGER, TEXT = "integer", "text"
MISSING = -1
LOWEST, HIGHEST = -(2**63), 2**63 - 1


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
        """What a segment's file stores, by name."""
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


IdColumn = IntegerIds | ConsecutiveIds | TextIds
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


def checked_ids(ids: GivenIds, kind: str | None, different: bool = True) -> tuple[Ids, str]:
    """Bring ids into an array, int64 or object holding `str`, and tell their kind.

    Args:
        ids: integers, or strings.
        kind: the kind of id that the index has already, None for none.
        different: False if one may be there twice.

    Raises:
        InputError: if ids are of neither kind or of another one than before, too large, or equal but to differ.
    """
    if isinstance(ids, np.ndarray) and ids.ndim == 1 and ids.dtype.kind == "i":
        checked, found = ids.astype(np.int64), INTEGER
    else:
        values: Any = ids.tolist() if isinstance(ids, np.ndarray) else ids
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InputError(f"ids is {ids!r}; give a list of ids.")
        checked, found = _from_values(list(values), kind)
    if kind is not None and found != kind and len(checked):
        raise InputError(f"ids are {_plural(found)}, but this index has {_plural(kind)}; give ids of that kind.")
    if different:
        _check_different(checked)
    return checked, found if len(checked) else (kind or found)


def _from_values(values: list[Any], kind: str | None) -> tuple[Ids, str]:
    values = [str(value) if isinstance(value, UUID) else value for value in values]
    if all(isinstance(value, str) for value in values) and (values or kind == TEXT):
        return _texts(values), TEXT
    for value in values:
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise InputError(f"id {value!r} is {type(value).__name__}; give ids that are all integers or all strings.")
        if not LOWEST <= int(value) <= HIGHEST:
            raise InputError(f"id {value} does not fit into 64 bits; give it as a string.")
    return np.array([int(value) for value in values], dtype=np.int64), INTEGER


def is_unicode(value: str) -> bool:
    """Whether UTF-8 can encode a text."""
    return value.encode(errors="ignore").decode() == value


def _texts(values: list[str]) -> Ids:
    for value in values:
        if not is_unicode(value):
            raise InputError(f"id {value!r} is not valid Unicode; give one that UTF-8 can encode.")
    texts = np.empty(len(values), dtype=object)
    texts[:] = values
    return texts


def _check_different(ids: Ids) -> None:
    if ids.dtype == np.int64:
        in_order = np.sort(ids)
        twice = in_order[1:][in_order[1:] == in_order[:-1]]
        if len(twice):
            raise InputError(f"ids has {int(twice[0])} twice; give every id once.")
        return
    seen: set[str] = set()
    for value in ids:
        if value in seen:
            raise InputError(f"ids has {value!r} twice; give every id once.")
        seen.add(value)


def _plural(kind: str) -> str:
    return "integers" if kind == INTEGER else "strings"
