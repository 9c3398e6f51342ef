"""Columns of metadata in memory, as numbers of their distinct values: a condition is a look at these numbers."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.column_files import keep_values, kept_values
from deephash_pipeline.hamming.conditions import (
    AND,
    DIFFERS,
    EQUALS,
    ID,
    IN,
    NOT,
    NOT_IN,
    OR,
    PREFIX,
    Tree,
    check_kinds,
)
from deephash_pipeline.hamming.filters import KINDS, ColumnKind, kind_of
from deephash_pipeline.hamming.kernels.flags import look_up
from deephash_pipeline.hamming.ledger import Ledger
from deephash_pipeline.hamming.written import all_read

Flags = NDArray[np.bool_]
NO_VALUE = 0


@dataclass(frozen=True, eq=False)
class ColumnPart:
    """A column at some positions that follow one another.

    Attributes:
        codes: number of the value at each position, unsigned; `NO_VALUE` where there is none.
        values: distinct values, of a kind after the other, ascending: that of number `n` is the one before place `n`.
        starts: number of the first value of each kind.
        places_of_tag: numbers of the lists that have a tag.

    Example:
        >>> part = column_part(["b", None, 3, "a"])
        >>> part.codes.tolist(), part.values, part.holds("<", "b").tolist()
        ([3, 0, 1, 2], [3, 'a', 'b'], [False, False, False, True])
    """

    codes: NDArray[Any]
    values: list[Any]
    starts: dict[ColumnKind, int]
    places_of_tag: dict[str, list[int]]

    def has_kind(self, kind: ColumnKind) -> bool:
        """Whether there is a value of a kind."""
        first, last = self._section(kind)
        return first < last

    def holds(self, operator: str, value: Any) -> Flags:
        """Whether a condition holds at each position."""
        if operator in (DIFFERS, NOT_IN):
            return ~self.holds(EQUALS if operator == DIFFERS else IN, value)
        if operator == IN:
            return self._is_one_of([number for each in value for number in self._equal(each)])
        if operator == EQUALS:
            return self._is_one_of(self._equal(value))
        first, last = self._section(kind_of(value))
        places = first - 1, last - 1
        if operator == PREFIX:
            first = 1 + bisect_left(self.values, value, *places)
            last = 1 + bisect_right(self.values, value, *places, key=lambda text: text[: len(value)])
        elif operator in ("<", "<="):
            last = 1 + (bisect_left if operator == "<" else bisect_right)(self.values, value, *places)
        else:
            first = 1 + (bisect_left if operator == ">=" else bisect_right)(self.values, value, *places)
        return (self.codes >= first) & (self.codes < last)

    def _section(self, kind: ColumnKind) -> tuple[int, int]:
        """Numbers of the first value of a kind, and of the first after it."""
        later = [self.starts[other] for other in KINDS[KINDS.index(kind) + 1 :]]
        return self.starts[kind], later[0] if later else len(self.values) + 1

    def _equal(self, value: Any) -> list[int]:
        """Numbers of the values that equal one, or are lists that have it."""
        if value is None:
            return [NO_VALUE]
        first, last = self._section(kind_of(value))
        number = 1 + bisect_left(self.values, value, first - 1, last - 1)
        found = [number] if number < last and self.values[number - 1] == value else []
        return found + (self.places_of_tag.get(value, []) if isinstance(value, str) else [])

    def _is_one_of(self, numbers: Sequence[int]) -> Flags:
        if len(numbers) == 1:
            return np.asarray(self.codes == numbers[0])
        wanted = np.zeros(len(self.values) + 1, dtype=np.bool_)
        wanted[list(numbers)] = True
        flags = np.empty(len(self.codes), dtype=np.bool_)
        look_up(self.codes, wanted, flags)
        return flags

    def given(self) -> list[Any]:
        """The values at all positions."""
        return list(map([None, *self.values].__getitem__, self.codes.tolist()))


def column_part(values: list[Any]) -> ColumnPart:
    """Number the values at some positions; None is none, and a list of texts is one of tags."""
    kinds = set(map(type, values))
    if kinds in ({float}, {int}):
        # Numbers of one type are sorted by NumPy.
        distinct, places = np.unique(np.array(values), return_inverse=True)
        return _numbered(places.astype(np.int32) + np.int32(1), distinct.tolist())
    flat = [tuple(value) if isinstance(value, list) else value for value in values] if list in kinds else values
    ordered = _in_order(set(flat) - {None})
    numbers = {value: number for number, value in enumerate(ordered, start=1)}
    numbers[None] = NO_VALUE
    return _numbered(np.fromiter(map(numbers.__getitem__, flat), dtype=np.int32, count=len(flat)), ordered)


def _in_order(distinct: Iterable[Any]) -> list[Any]:
    """Different values, of a kind after the other, ascending."""
    of_kind: dict[ColumnKind, list[Any]] = {kind: [] for kind in KINDS}
    for value in distinct:
        of_kind[kind_of(value)].append(value)
    return [value for kind in KINDS for value in sorted(of_kind[kind])]


def _joined(first: ColumnPart, second: ColumnPart) -> ColumnPart:
    """One part of two, of which the second follows the first."""
    ordered = _in_order(dict.fromkeys([*first.values, *second.values]))
    numbers = {value: number for number, value in enumerate(ordered, start=1)}
    renumbered = [
        np.array([NO_VALUE, *map(numbers.__getitem__, part.values)], dtype=np.int32)[part.codes]
        for part in (first, second)
    ]
    return _numbered(np.concatenate(renumbered), ordered)


def _numbered(codes: NDArray[Any], values: list[Any]) -> ColumnPart:
    """A part of numbers and the values that they are of, of a kind after the other."""
    starts: dict[ColumnKind, int] = {}
    first = 0
    for kind in KINDS:
        first = bisect_left(values, KINDS.index(kind), first, key=lambda value: KINDS.index(kind_of(value)))
        starts[kind] = first + 1
    places: dict[str, list[int]] = {}
    for number, tags in enumerate(values[starts["tags"] - 1 :], start=starts["tags"]):
        for tag in set(tags):
            places.setdefault(tag, []).append(number)
    # Fewer bytes are compared sooner.
    return ColumnPart(codes.astype(np.min_scalar_type(len(values)), copy=False), values, starts, places)


class Columns:
    """The columns of an index that conditions have asked for.

    Metadata of a position never change, so that only those of new positions are read again.

    Args:
        ledger: ledger of the metadata.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._parts: dict[str, list[ColumnPart]] = {}

    def holds(self, tree: Tree, find: Callable[[tuple[Any, ...]], NDArray[np.int64]]) -> Flags:
        """Whether a condition holds at each position that there is by now, bool (positions,).

        Args:
            tree: the condition.
            find: function that gives the positions of items with some ids, of those that there are.

        Raises:
            InputError: a column has values of other kinds, or the metadata are damaged.
        """
        stop = int(self._ledger.settings()["next_position"])
        return self._holds(tree, find, stop)

    def _holds(self, tree: Tree, find: Callable[[tuple[Any, ...]], NDArray[np.int64]], stop: int) -> Flags:
        if tree[0] == NOT:
            return ~self._holds(tree[1], find, stop)
        if tree[0] in (AND, OR):
            every = [self._holds(each, find, stop) for each in tree[1]]
            return reduce(np.logical_and if tree[0] == AND else np.logical_or, every) if every else np.ones(stop, bool)
        if tree[0] == ID:
            flags = np.zeros(stop, dtype=np.bool_)
            flags[find(tree[1])] = True
            return flags
        name, operator, value = tree
        parts = self._until(name, stop)
        check_kinds(name, value if operator in (IN, NOT_IN) else [value], self.has_kind)
        found = [part.holds(operator, value) for part in parts]
        return found[0][:stop] if len(found) == 1 else np.concatenate([*found, np.empty(0, np.bool_)])[:stop]

    def values_at(self, column: str, positions: NDArray[np.int64]) -> list[Any]:
        """The values of a column at some positions, None where there is none."""
        stop = int(self._ledger.settings()["next_position"])
        given = [value for part in self._until(column, stop) for value in part.given()]
        return [given[position] for position in positions.tolist()]

    def has_kind(self, column: str, kind: ColumnKind) -> bool:
        """Whether a column has a value of a kind, or had one; a list of tags is text as well."""
        stop = int(self._ledger.settings()["next_position"])
        kinds: Iterable[ColumnKind] = ("text", "tags") if kind == "text" else (kind,)
        return any(part.has_kind(each) for part in self._until(column, stop) for each in kinds)

    def added(self, first: int, columns: Mapping[str, Sequence[Any]]) -> None:
        """Number the values of many new items at once, so that a condition need not read them again.

        Args:
            first: position of the first of them; they follow one another.
            columns: values as the ledger stores them, by column.
        """
        names = {name.lower(): name for name in self._ledger.columns()}
        for given, values in columns.items():
            name = names[given.lower()]
            if sum(len(part.codes) for part in self._known(name, first)) == first:
                self._append(name, column_part(all_read(values)))

    def keep(self, names: Iterable[str]) -> None:
        """Write the files of columns, so that whoever opens the index next has its conditions at once."""
        stop = int(self._ledger.settings()["next_position"])
        for name in names:
            parts = self._until(name, stop)
            if len(parts) > 1:
                parts[:] = [reduce(_joined, parts)]
                keep_values(self._ledger, name, parts[0].codes, parts[0].values)

    def _until(self, column: str, stop: int) -> list[ColumnPart]:
        """The parts of a column, read as far as a position."""
        parts = self._known(column, stop)
        known = sum(len(part.codes) for part in parts)
        if known < stop:
            self._append(column, column_part(self._ledger.column(column, known, stop)))
        return parts

    def _known(self, column: str, stop: int) -> list[ColumnPart]:
        """The parts of a column in memory, or in its file as far as a position."""
        if column not in self._parts:
            kept = kept_values(self._ledger, column, stop)
            self._parts[column] = [] if kept is None else [_numbered(*kept)]
        return self._parts[column]

    def _append(self, column: str, part: ColumnPart) -> None:
        parts = self._parts[column]
        parts.append(part)
        # Of many small ones a large one is made, each value a few times in all.
        while len(parts) > 1 and 2 * len(parts[-1].codes) >= len(parts[-2].codes):
            last, before = parts.pop(), parts.pop()
            parts.append(_joined(before, last))
        if len(parts) == 1:
            keep_values(self._ledger, column, parts[0].codes, parts[0].values)
