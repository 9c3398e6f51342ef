"""Pictures that were found, as one HTML file that needs no other."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deephash_pipeline.common.outputs import starts_with
from deephash_pipeline.common.templates import render
from deephash_pipeline.photographs import LOOK
from deephash_pipeline.photographs.nearness import percent, word
from deephash_pipeline.photographs.thumbnails import thumbnail

FOUND_TEMPLATE = Path(__file__).with_name("found.html.j2")
TILE_SIDE = 240
is_found_page = starts_with(FOUND_TEMPLATE.read_text(encoding="utf-8").partition('<meta name="viewport')[0])
"""Tells whether a file is a page of this command."""


@dataclass(frozen=True)
class Found:
    """A picture that was found.

    Attributes:
        id: id in the index.
        path: path of its file; an empty one if it has none.
        share: how near it is, see `deephash_pipeline.photographs.nearness`.
        about: what else is known of it.
    """

    id: str
    path: Path
    share: float
    about: dict[str, Any]

    @property
    def percent(self) -> int:
        """How near it is, 100 for the same code."""
        return percent(self.share)

    @property
    def folder(self) -> str:
        """The name of the folder that it is in, or else its label."""
        return str(self.about.get("label") or self.path.parent.name)

    @property
    def shown(self) -> str:
        """Where its file is; its id, if it has none of its own."""
        return str(self.path) if self.path.name and os.path.isabs(self.about.get("path") or "") else self.id

    @property
    def near(self) -> str:
        """How near it is, in words."""
        return f"{self.percent} %, {word(self.share)}"


@dataclass(frozen=True)
class AskedPicture:
    """A picture that was searched by, and what was found, nearest first."""

    name: str
    path: Path
    rows: Sequence[Found]


def render_found(queries: Sequence[AskedPicture], title: str) -> str:
    """Show what was found for each picture, with links to the files.

    Example:
        >>> row = Found("a.png", Path("/photos/a.png"), 0.1, {})
        >>> "80 %, similar" in render_found([AskedPicture("b.png", Path("b.png"), [row])], "Found")
        True
    """

    def small(path: Path) -> str:
        with suppress(Exception):  # what cannot be read any more has none
            return thumbnail(path, TILE_SIDE).address
        return ""

    def address(path: Path) -> str:
        return path.absolute().as_uri() if path.name else ""

    look = LOOK.read_text(encoding="utf-8")
    return render(FOUND_TEMPLATE, queries=queries, title=title, thumbnail=small, address=address, look=look)
