"""Ids, labels and paths as they are given -> text, in one form of Unicode."""

import difflib
import os
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError

Texts = Sequence[Any] | NDArray[Any]
"""Also a Series, which is a sequence but for its name."""


def texts(what: str, values: Iterable[Any], empty: bool = False) -> list[Any]:
    """Bring ids, labels or paths into a list of strings.

    Args:
        what: they are.
        values: strings, whole numbers, paths; a list, a tuple, an array or a Series.
        empty: True if one may be None.

    Raises:
        InputError: it is no such sequence, or a value is something else.

    Example:
        >>> texts("label", np.array([3, 5])), texts("label", ("cat", None), empty=True)
        (['3', '5'], ['cat', None])
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) != 1:
        raise InputError(f"{what}s are {values!r:.80}: give a list with one for each image")
    found = []
    for value in values:
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, os.PathLike):
            plain = os.fspath(plain)
        if isinstance(plain, int) and not isinstance(plain, bool):
            plain = str(plain)
        if not isinstance(plain, str) and not (empty and plain is None):
            none = ", or None for none" if empty else ""
            raise InputError(f"{what} {value!r} is {type(value).__name__}: give text or whole numbers{none}")
        found.append(plain)
    return found


def one_form(label: str) -> str:
    r"""A label in the form of Unicode that an index stores, NFC.

    Example:
        >>> len(one_form("cafe\N{COMBINING ACUTE ACCENT}"))
        4
    """
    return unicodedata.normalize("NFC", label)


def stored_labels(labels: Texts) -> list[str]:
    """Labels in the form that an index stores.

    Raises:
        InputError: see `texts`.

    Example:
        >>> stored_labels([3, "cat"])
        ['3', 'cat']
    """
    return [one_form(label) for label in texts("label", labels)]


def unknown(label: str, known: Sequence[str], noun: str = "image") -> InputError:
    """What is to be raised where no image, or other item, has a label.

    Example:
        >>> str(unknown("cta", ["cat", "dog"]))
        'no image has the label `cta`: do you mean `cat`?'
    """
    near = difflib.get_close_matches(label, [name for name in known if name != label], n=1, cutoff=0.0)
    return InputError(
        f"no {noun} has the label `{label}`: " + (f"do you mean `{near[0]}`?" if near else "none has any")
    )
