"""Items as other engines store them: a row for each, under its position in the order of insertion."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming import Item, ItemId
from deephash_pipeline.hamming.filters import ColumnKind, storable

ROW_DIGEST_BYTES = 8
NO_ROW_FEATURES = np.empty(0, dtype=np.float16)


@dataclass(frozen=True)
class Row:
    """An item in another engine.

    Attributes:
        position: number in the order of insertion, which no other item of its index ever has.
        id: id that it was added as.
        code: packed bits.
        metadata: columns of the item, in JSON.
        vector: float16, its features; of no number where none are exported.
        digest: digest of all that, 64 bits with a sign; rows of one digest are equal.
    """

    position: int
    id: ItemId
    code: bytes
    metadata: str
    vector: NDArray[np.float16]
    digest: int


def row_of(position: int, item: Item, features: NDArray[np.floating] = NO_ROW_FEATURES) -> Row:
    """The row of an item.

    Raises:
        InputError: it has bytes in its metadata, which JSON lacks.

    Example:
        >>> row = row_of(3, Item("a", np.array([240], dtype=np.uint8), {"label": "x"}))
        >>> row.position, row.id, row.metadata
        (3, 'a', '{"label": "x"}')
    """
    try:
        # An engine compares truth with numbers no more than text.
        plain = {name: int(value) if isinstance(value, bool) else value for name, value in item.metadata.items()}
        metadata = json.dumps(plain, ensure_ascii=False, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"the metadata of {item.id!r} cannot be exported ({error}); leave that column out.") from error
    code = item.code.tobytes()
    vector = features.astype("<f2")
    content = json.dumps([position, item.id]).encode() + b"\0" + code + b"\0" + metadata.encode() + vector.tobytes()
    digest = hashlib.blake2b(content, digest_size=ROW_DIGEST_BYTES).digest()
    return Row(position, item.id, code, metadata, vector, int.from_bytes(digest, "little", signed=True))


@dataclass(frozen=True)
class About:
    """What an export says of itself.

    Attributes:
        code_length: bits per code.
        text_ids: True if ids are strings; otherwise they are 64-bit integers.
        width: numbers of the vectors beside the codes, 0 for none.
        columns: columns of metadata.
        values: first values of every column, the first of its distinct values, ascending.
        kinds: kinds of values that each column has: `numbers`, `text`.
        items: number of items; None until an export has come to its end.
        last_position: the largest of a row, -1 for none.
        made_by: see `Searchable`; None in an export of an earlier version.
    """

    code_length: int
    text_ids: bool
    width: int = 0
    columns: list[str] = field(default_factory=list)
    values: Mapping[str, list[Any]] = field(default_factory=dict)
    kinds: Mapping[str, list[str]] = field(default_factory=dict)
    items: int | None = None
    last_position: int = -1
    made_by: str | None = None

    def has_kind(self, column: str, kind: ColumnKind) -> bool:
        """Whether a column has a value of a kind; an earlier version has exported without saying so."""
        return column not in self.kinds or kind in self.kinds[column]

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(vars(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | None, place: str) -> "About":
        """Undo `to_json`.

        Raises:
            InputError: it is no description of an export.
        """
        try:
            return cls(**json.loads(text or ""))
        except (ValueError, TypeError) as error:
            raise InputError(f"{place} was not made by `deephash-pipeline export`: give another name.") from error


def item_of(item_id: ItemId, code: bytes, metadata: Mapping[str, Any]) -> Item:
    """Undo `row_of`."""
    # PostgreSQL writes a float such as 1e23 with all its digits.
    numbers = {name: float(value) for name, value in metadata.items() if isinstance(value, int) and abs(value) > 2**63}
    return Item(item_id, np.frombuffer(code, dtype=np.uint8), {**metadata, **numbers})


def bits_of(code: NDArray[np.uint8] | bytes, code_length: int) -> str:
    """A packed code as its bits, first to last.

    Example:
        >>> bits_of(bytes([160]), 4)
        '1010'
    """
    packed = bytes(code)
    return f"{int.from_bytes(packed):0{8 * len(packed)}b}"[:code_length]


def code_of_bits(bits: str) -> bytes:
    """Undo `bits_of`.

    Example:
        >>> list(code_of_bits("1010"))
        [160]
    """
    return np.packbits(np.frombuffer(bits.encode(), dtype=np.uint8) == ord("1")).tobytes()


def plain_value(column: str, value: Any) -> Any:
    """A value that a column is compared with, as JSON has it.

    Raises:
        InputError: no row has such a value.
    """
    value = storable(column, value)
    # What no exported item can have, engines refuse each in its own way.
    if isinstance(value, bytes) or value in (math.inf, -math.inf) or "\0" in str(value):
        raise InputError(f"where has {value!r} for {column!r}, which no exported item has; give another value.")
    return int(value) if isinstance(value, bool) else value
