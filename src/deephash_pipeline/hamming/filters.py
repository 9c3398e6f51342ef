"""Metadata columns, and conditions on them: `where={"label": [3, 5], "year": {">=": 2020}}`."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming.ids import is_unicode
from deephash_pipeline.hamming.ledger import Ledger, quoted

Where = Mapping[str, Any]
Condition = tuple[str, tuple[Any, ...]]
"""An expression in SQL, and the values of its question marks."""
EQUALS, DIFFERS, IN = "=", "!=", "in"
OPERATORS = ("<", "<=", ">", ">=", DIFFERS)
Kind = Literal["numbers", "text", "bytes"]
SQLITE_TYPES: dict[Kind, tuple[str, ...]] = {"numbers": ("integer", "real"), "text": ("text",), "bytes": ("blob",)}
HasKind = Callable[[str, Kind], bool]
"""Whether a column has a value of a kind."""
# SQLite takes 32,766 values in a statement, and expressions of depth 1,000.
MOST_VALUES = 30_000
MOST_CONDITIONS = 901
# SQLite takes 2,000 in a table; two are the ledger's.
MOST_COLUMNS = 1998
CONDITIONS_KEPT = 64


def checked_metadata(
    metadata: Mapping[str, Sequence[Any]] | None, items: int, columns: Sequence[str] = ()
) -> dict[str, list[Any]]:
    """Bring metadata into lists of values that SQLite can store.

    Args:
        metadata: values by column, one for each item: str, int, float, bool, bytes or None for no value.
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
        checked[name] = [storable(name, value) for value in values]
    if len({name.lower() for name in checked}) < len(checked):
        raise InputError("metadata has two columns that differ in capitals alone; rename one.")
    if len(names := {name.lower() for name in (*columns, *checked)}) > MOST_COLUMNS:
        raise InputError(f"metadata would have {len(names)} columns; an index has at most {MOST_COLUMNS}.")
    return checked


def kind_of(value: str | int | float | bytes) -> Kind:
    """What a value is compared as.

    Example:
        >>> kind_of(True), kind_of(2.5), kind_of("2.5")
        ('numbers', 'numbers', 'text')
    """
    return "text" if isinstance(value, str) else "bytes" if isinstance(value, bytes) else "numbers"


def condition_of(where: Where, columns: Sequence[str], has_kind: HasKind) -> Condition:
    """Translate a condition to SQL: the expression, and the values of its question marks.

    Args:
        where: conditions by column: a value to equal, a list of values to be one of, or a mapping from operators to
            values; None stands for no value. All columns' conditions must hold.
        columns: the columns that there are.
        has_kind: function that says whether a column has a value of a kind.

    Raises:
        InputError: if there is no such column, it has values of another kind, or a condition has another form.

    Example:
        >>> condition_of({"label": [3, 5], "year": {"!=": 2020}}, ["label", "year"], lambda column, kind: True)
        ('1 AND ("label" IN (?, ?)) AND "year" IS NOT ?', (3, 5, 2020))
    """
    parts, values = ["1"], []
    for name, operator, value in named_conditions(where, columns, storable, has_kind):
        column = quoted(name)
        if operator == IN:
            present = [each for each in value if each is not None]
            empty = f" OR {column} IS NULL" if len(present) < len(value) else ""
            parts.append(f"({column} IN ({', '.join('?' * len(present))}){empty})")
            values += present
            continue
        if operator in (EQUALS, DIFFERS):
            parts.append(f"{column} IS{' NOT' if operator == DIFFERS else ''} ?")
        else:
            types = ", ".join(map(repr, SQLITE_TYPES[kind_of(value)]))
            parts.append(f"(typeof({column}) IN ({types}) AND {column} {operator} ?)")
        values.append(value)
    if len(values) > MOST_VALUES or len(parts) > MOST_CONDITIONS:
        raise InputError(
            f"where has {len(parts) - 1} conditions with {len(values)} values; give at most {MOST_CONDITIONS - 1} with "
            f"{MOST_VALUES}."
        )
    return " AND ".join(parts), tuple(values)


def named_conditions(
    where: Where, columns: Sequence[str], value_of: Callable[[str, Any], Any], has_kind: HasKind
) -> Iterator[tuple[str, str, Any]]:
    """Conditions as names that columns have, operators and values, a list after `IN`; every engine's check.

    Args:
        where: conditions, see `condition_of`.
        columns: the columns that there are.
        value_of: checks a value of a column, and converts it.
        has_kind: function that says whether a column has a value of a kind.

    Raises:
        InputError: if there is no such column, it has values of another kind, or a condition has another form.

    Example:
        >>> list(named_conditions({"Label": (3, 5)}, ["label"], lambda name, value: value, lambda column, kind: True))
        [('label', 'in', [3, 5])]
    """
    if not isinstance(where, Mapping):
        raise InputError(f'where is {where!r}; give a mapping from columns to values, such as {{"label": 3}}.')
    known = {name.lower(): name for name in columns}
    for given, wanted in where.items():
        if not isinstance(given, str) or given.lower() not in known:
            there_are = ", ".join(columns) or "none"
            raise InputError(f"where names a column {given!r} that this index lacks; columns are: {there_are}.")
        name = known[given.lower()]
        if isinstance(wanted, Mapping):
            for operator, value in wanted.items():
                if operator not in OPERATORS:
                    raise InputError(f"where has {operator!r} for {given!r}; use one of {', '.join(OPERATORS)}.")
                if value is None and operator != DIFFERS:
                    raise InputError(
                        f"where has None after {operator!r} for {given!r}, but no value is neither less nor more; "
                        f'give a value, or {{"!=": None}} for items that have one.'
                    )
            found = [(operator, value_of(name, value)) for operator, value in wanted.items()]
        elif isinstance(wanted, list | tuple | set | frozenset | np.ndarray):
            found = [(IN, [value_of(name, value) for value in wanted])]
        else:
            found = [(EQUALS, value_of(name, wanted))]
        for operator, value in found:
            _check_kinds(name, value if operator == IN else [value], has_kind)
            yield name, operator, value


def _check_kinds(name: str, values: list[Any], has_kind: HasKind) -> None:
    """Refuse what equals nothing, or is before or after everything, only because it is written otherwise."""
    first_of = {kind_of(value): value for value in reversed(values) if value is not None}
    for kind, value in first_of.items():
        others = [] if has_kind(name, kind) else [other for other in SQLITE_TYPES if has_kind(name, other)]
        if others:
            raise InputError(f"where compares {name!r}, which has {' and '.join(others)}, with {value!r}; give such.")


def storable(name: str, value: Any) -> Any:
    """Bring a value of a column into a type that SQLite can store.

    Raises:
        InputError: there is none for it.

    Example:
        >>> storable("year", np.int16(2020))
        2020
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is not None and not isinstance(value, str | int | float | bytes):
        kind = type(value).__name__
        raise InputError(f"column {name!r} has a value that is {kind}; give str, int, float, bool, bytes or None.")
    if isinstance(value, float) and math.isnan(value):
        raise InputError(f"column {name!r} has nan for a value; give None for no value.")
    if isinstance(value, str) and not is_unicode(value):
        raise InputError(f"column {name!r} has {value!a}, which is no Unicode; give one that UTF-8 can encode.")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InputError(f"column {name!r} has {value}, which does not fit into 64 bits; give it as a string.")
    return value


class Conditions:
    """The positions at which conditions hold; those asked for lately are kept.

    Metadata of a position never change, so a condition that is asked again is looked up for new positions alone.

    Args:
        ledger: ledger of the metadata.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._kinds: set[tuple[str, Kind]] = set()
        self._known: dict[Condition, NDArray[np.int64]] = {}

    def positions(self, condition: Condition) -> NDArray[np.int64]:
        """Positions of the items, also of some that are removed, for which a condition holds: int64, ascending."""
        known = self._known.pop(condition, np.empty(0, dtype=np.int64))
        # Those after the last known one: what lies between, the condition does not hold for.
        new = self._ledger.positions_where(*condition, after=int(known[-1]) if len(known) else -1)
        self._known[condition] = np.concatenate((known, new)) if len(new) else known
        if len(self._known) > CONDITIONS_KEPT:
            del self._known[next(iter(self._known))]
        return self._known[condition]

    def has_kind(self, column: str, kind: Kind) -> bool:
        """Whether a column has a value of a kind, or had one."""
        if (column, kind) not in self._kinds and self._ledger.has_type(column, SQLITE_TYPES[kind]):
            self._kinds.add((column, kind))
        return (column, kind) in self._kinds
