"""Truth and lists of texts, for which SQLite has no type, as text with a mark before it."""

import json
from collections.abc import Sequence
from typing import Any

MARK = "\x1e"
"""Before what is no text: a control character that separates records."""

TRUTHS = {f"{MARK}true": True, f"{MARK}false": False}


def written(value: Any) -> Any:
    r"""A value as SQLite stores it.

    Example:
        >>> written(True), written(["a"]), written("a")
        ('\x1etrue', '\x1e["a"]', 'a')
    """
    if isinstance(value, bool | list):
        return MARK + json.dumps(value, ensure_ascii=False)
    return value


def read(value: Any) -> Any:
    """Undo `written`.

    Example:
        >>> read(written(True)), read(written(["a"])), read(3)
        (True, ['a'], 3)
    """
    if isinstance(value, str) and value.startswith(MARK):
        return TRUTHS[value] if value in TRUTHS else json.loads(value[len(MARK) :])
    return value


def all_read(values: Sequence[Any]) -> list[Any]:
    """`read` of many values, which most times is what they are.

    Example:
        >>> all_read([written(True), None, 3])
        [True, None, 3]
    """
    texts = "".join([value for value in values if isinstance(value, str)])
    return list(map(read, values)) if MARK in texts else list(values)
