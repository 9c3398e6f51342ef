"""Ids of items: 64-bit integers or strings, one kind in an index."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any
from uuid import UUID

import numpy as np

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming.answers import GivenIds, Ids

INTEGER, TEXT = "integer", "text"
MISSING = -1
LOWEST, HIGHEST = -(2**63), 2**63 - 1


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
