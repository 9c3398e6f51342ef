"""How much of a picture may have changed in a copy of it."""

from enum import StrEnum
from typing import Self


class Level(StrEnum):
    """A level by its name.

    Attributes:
        agreement: least agreement of a copy, see `Registration`.
        shown: the level as a page calls it.
        measured: what it finds and takes wrongly, of 200 photographs, see docs/photographs.md.

    Example:
        >>> Level("strict").agreement
        0.9
    """

    agreement: float
    shown: str
    measured: str

    def __new__(cls, name: str, agreement: float, shown: str, found: int, wrong: int) -> Self:
        """Make a member that is its name."""
        level = str.__new__(cls, name)
        level._value_, level.agreement, level.shown = name, agreement, shown
        level.measured = f"finds {found:,} of 1,000 usual edits, takes {wrong} of a million other pairs for copies"
        return level

    STRICT = "strict", 0.9, "hardly changed", 994, 5
    DEFAULT = "default", 0.85, "usual", 999, 6
    LOOSE = "loose", 0.58, "also with text over it", 1000, 11
