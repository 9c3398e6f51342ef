"""Conditions on metadata and ids as users write them -> a tree: `{"label": [3, 5], "$not": {"year": {"<": 2020}}}`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming.filters import KINDS, ColumnKind, kind_of, storable

Where = Mapping[str, Any]
Tree = tuple[Any, ...]
"""``("$and", trees)``, ``("$or", trees)``, ``("$not", tree)``, ``("$id", ids)`` or (column, operator, value)."""
HasKind = Callable[[str, ColumnKind], bool]
"""Whether a column has a value of a kind."""
EQUALS, DIFFERS, IN, NOT_IN, PREFIX = "=", "!=", "in", "not in", "prefix"
RANGES = ("<", "<=", ">", ">=")
OPERATORS = (*RANGES, DIFFERS, IN, NOT_IN, PREFIX)
AND, OR, NOT, ID = "$and", "$or", "$not", "$id"
LISTS = (list, tuple, set, frozenset, np.ndarray)
DEEPEST = 50


def parsed(
    where: Where, columns: Sequence[str], value_of: Callable[[str, Any], Any] = storable, depth: int = 0
) -> Tree:
    """Check conditions, and bring them into a tree of tuples.

    Args:
        where: conditions by column, all of which must hold: a value to equal, a list of values to be one of, or a
            mapping from `OPERATORS` to values; None stands for no value. ``"$and"`` and ``"$or"`` have lists of
            conditions, ``"$not"`` has conditions, ``"$id"`` has an id or several.
        columns: the columns that there are.
        value_of: checks a value of a column, and converts it.
        depth: how many conditions this one is within.

    Raises:
        InputError: there is no such column, or a condition has another form.

    Example:
        >>> parsed({"Label": [3, 5], "$not": {"year": {"<": 2020}}}, ["label", "year"])
        ('$and', (('label', 'in', (3, 5)), ('$not', ('$and', (('year', '<', 2020),)))))
    """
    if not isinstance(where, Mapping):
        raise InputError(f'where is {where!r}; give a mapping from columns to values, such as {{"label": 3}}.')
    if depth > DEEPEST:
        raise InputError(f"where has conditions within conditions {DEEPEST} deep; give them side by side.")
    found: list[Tree] = []
    known = {name.lower(): name for name in columns}
    for given, wanted in where.items():
        if given in (AND, OR):
            if not isinstance(wanted, list | tuple) or not wanted:
                raise InputError(f"where has {wanted!r:.80} after {given!r}; give a list of conditions.")
            found.append((given, tuple(parsed(each, columns, value_of, depth + 1) for each in wanted)))
        elif given == NOT:
            found.append((NOT, parsed(wanted, columns, value_of, depth + 1)))
        elif given == ID:
            found.append((ID, tuple(_listed(wanted) if isinstance(wanted, LISTS) else [wanted])))
        elif not isinstance(given, str) or given.lower() not in known:
            there_are = ", ".join(columns) or "none"
            raise InputError(f"where names a column {given!r} that this index lacks; columns are: {there_are}.")
        else:
            found += _comparisons(given, known[given.lower()], wanted, value_of)
    return AND, tuple(found)


def _comparisons(given: str, name: str, wanted: Any, value_of: Callable[[str, Any], Any]) -> Iterator[Tree]:
    def one(name: str, value: Any) -> Any:
        found = value_of(name, value)
        if isinstance(found, list):
            raise InputError(f"where compares {given!r} with the list {value!r:.80}; give one value.")
        return found

    if isinstance(wanted, LISTS):
        yield name, IN, tuple(one(name, value) for value in _listed(wanted))
    elif not isinstance(wanted, Mapping):
        yield name, EQUALS, one(name, wanted)
    else:
        for operator, value in wanted.items():
            if operator not in OPERATORS:
                raise InputError(f"where has {operator!r} for {given!r}; use one of {', '.join(OPERATORS)}.")
            if operator in (IN, NOT_IN):
                if not isinstance(value, LISTS):
                    raise InputError(
                        f"where has {value!r:.80} after {operator!r} for {given!r}; give a list of values."
                    )
                yield name, operator, tuple(value_of(name, each) for each in _listed(value))
                continue
            if value is None and operator != DIFFERS:
                raise InputError(
                    f"where has None after {operator!r} for {given!r}, but no value is neither less nor more; "
                    f'give a value, or {{"!=": None}} for items that have one.'
                )
            if operator == PREFIX and not isinstance(value, str):
                raise InputError(f"where has {value!r:.80} after {operator!r} for {given!r}; give a text.")
            yield name, operator, one(name, value)


def _listed(values: Any) -> list[Any]:
    listed: list[Any] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return listed


def named_conditions(
    where: Where, columns: Sequence[str], value_of: Callable[[str, Any], Any], has_kind: HasKind
) -> Iterator[tuple[str, str, Any]]:
    """Conditions as names that columns have, operators and values, a list after `IN`, for engines that know no others.

    Args:
        where: conditions, see `parsed`.
        columns: the columns that there are.
        value_of: checks a value of a column, and converts it.
        has_kind: function that says whether a column has a value of a kind.

    Raises:
        InputError: there is no such column, it has values of another kind, or a condition has another form.

    Example:
        >>> list(named_conditions({"Label": (3, 5)}, ["label"], lambda name, value: value, lambda column, kind: True))
        [('label', 'in', [3, 5])]
    """
    for tree in parsed(where, columns, value_of)[1]:
        word = tree[0] if tree[0] in (AND, OR, NOT, ID) else tree[1]
        if word not in (EQUALS, DIFFERS, IN, *RANGES):
            raise InputError(f"where has {word!r}, which codes in another engine are not asked; leave it out.")
        name, operator, value = tree
        check_kinds(name, value if operator == IN else [value], has_kind)
        yield name, operator, list(value) if operator == IN else value


def check_kinds(name: str, values: Sequence[Any], has_kind: HasKind) -> None:
    """Refuse what equals nothing, or is before or after everything, only because it is written otherwise.

    Raises:
        InputError: a column has values, and none of the kind of one of these.
    """
    first_of = {kind_of(value): value for value in reversed(values) if value is not None}
    for kind, value in first_of.items():
        others = [] if has_kind(name, kind) else [other for other in KINDS if has_kind(name, other)]
        if others:
            raise InputError(f"where compares {name!r}, which has {' and '.join(others)}, with {value!r}; give such.")
