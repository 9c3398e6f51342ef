"""Values of metadata: which there may be, how the ledger stores them, and how they come back."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any, Literal

import numpy as np

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming.ids import is_unicode
from deephash_pipeline.hamming.ledger import quoted
from deephash_pipeline.hamming.written import MARK, written

ColumnKind = Literal["numbers", "text", "bytes", "tags"]
KINDS: tuple[ColumnKind, ...] = ("numbers", "text", "bytes", "tags")
# SQLite takes 2,000 in a table; two are the ledger's.
MOST_COLUMNS = 1998


def checked_metadata(
    metadata: Mapping[str, Sequence[Any]] | None, items: int, columns: Sequence[str] = ()
) -> dict[str, list[Any]]:
    """Bring metadata into lists of values as the ledger stores them.

    Args:
        metadata: values by column, one for each item, see `storable`.
        items: number of items.
        columns: the columns that there are already.

    Raises:
        InputError: if a column has another number of values, a value is of another type, or there are too many columns.

    Example:
        >>> checked_metadata({"year": np.array([2020, 2021])}, items=2)
        {'year': [2020, 2021]}
    """
    checked = {}
    for name, values in (metadata or {}).items():
        quoted(name)
        if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
            raise InputError(f"metadata column {name!r} is {values!r}; give a list with one value for each item.")
        if len(values) != items:
            raise InputError(f"metadata column {name!r} has {len(values)} values for {items} items; give one for each.")
        checked[name] = _storable_column(name, values)
    if len({name.lower() for name in checked}) < len(checked):
        raise InputError("metadata has two columns that differ in capitals alone; rename one.")
    if len(names := {name.lower() for name in (*columns, *checked)}) > MOST_COLUMNS:
        raise InputError(f"metadata would have {len(names)} columns; an index has at most {MOST_COLUMNS}.")
    return checked


def _storable_column(name: str, values: Sequence[Any]) -> list[Any]:
    """The same as `storable` and `written` of each value; of one type they are looked at together."""
    listed = values.tolist() if isinstance(values, np.ndarray) and values.dtype.kind in "iufbU" else list(values)
    kinds = set(map(type, listed)) - {type(None)}
    if kinds == {str}:
        whole = "".join(text for text in listed if text is not None)
        if MARK not in whole and is_unicode(whole):
            return listed
    if kinds == {float} and not any(map(math.isnan, (value for value in listed if value is not None))):
        return listed
    if kinds == {int}:
        present = [value for value in listed if value is not None]
        if min(present) >= -(2**63) and max(present) < 2**63:
            return listed
    return [written(storable(name, value)) for value in listed]


def kind_of(value: Any) -> ColumnKind:
    """What a value is compared as; truth is a number.

    Example:
        >>> kind_of(True), kind_of(2.5), kind_of("2.5"), kind_of(("a", "b"))
        ('numbers', 'numbers', 'text', 'tags')
    """
    if isinstance(value, str):
        return "text"
    return "bytes" if isinstance(value, bytes) else "tags" if isinstance(value, tuple | list) else "numbers"


def storable(name: str, value: Any) -> Any:
    """Bring a value of a column into a type that an index has: str, int, float, bool, bytes, a list of texts, or None.

    Dates and times become text that is in their order, those with a zone in UTC.

    Raises:
        InputError: there is none for it.

    Example:
        >>> storable("year", np.int16(2020)), storable("day", date(2020, 1, 2)), storable("tags", ("a", "b"))
        (2020, '2020-01-02', ['a', 'b'])
    """
    if isinstance(value, np.datetime64):
        value = None if np.isnat(value) else value.astype("datetime64[us]").item()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, date | time):
        return _written_time(value)
    if isinstance(value, list | tuple | set | frozenset | np.ndarray) and all(isinstance(tag, str) for tag in value):
        return [str(storable(name, tag)) for tag in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if value is not None and not isinstance(value, str | int | float | bytes):
        kind = type(value).__name__
        raise InputError(
            f"column {name!r} has a value that is {kind}; give str, int, float, bool, bytes, a date or time, a list of "
            "str, or None."
        )
    if isinstance(value, float) and math.isnan(value):
        raise InputError(f"column {name!r} has nan for a value; give None for no value.")
    if isinstance(value, str) and not is_unicode(value):
        raise InputError(f"column {name!r} has {value!a}, which is no Unicode; give one that UTF-8 can encode.")
    if isinstance(value, str) and value.startswith(MARK):
        raise InputError(f"column {name!r} has {value!a}; give a text that begins with another character.")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InputError(f"column {name!r} has {value}, which does not fit into 64 bits; give it as a string.")
    return value


def _written_time(value: date | time) -> str | None:
    """As the columns of a Parquet file: `2020-01-02 03:04:05.000000`, with a Z in UTC."""
    if value != value:
        return None
    if isinstance(value, datetime):
        zone = "" if value.tzinfo is None else "Z"
        value = value if value.tzinfo is None else value.astimezone(UTC)
        return f"{value:%Y-%m-%d %H:%M:%S.%f}{zone}"
    return f"{value:%H:%M:%S.%f}" if isinstance(value, time) else value.isoformat()
