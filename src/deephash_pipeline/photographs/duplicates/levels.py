"""How much of a picture may have changed in a copy of it."""

from enum import StrEnum
from typing import Self


class Level(StrEnum):
    """A level by its name.

    Attributes:
        agreement: least agreement of a copy, correlation less the share of what has changed.
        shown: the level as a page calls it.

    Example:
        >>> Level("strict").agreement
        0.9
    """

    agreement: float
    shown: str

    def __new__(cls, name: str, agreement: float, shown: str) -> Self:
        """Make a member that is its name."""
        level = str.__new__(cls, name)
        level._value_, level.agreement, level.shown = name, agreement, shown
        return level

    STRICT = "strict", 0.9, "hardly changed"
    DEFAULT = "default", 0.85, "usual"
    LOOSE = "loose", 0.6, "also with text over it"
