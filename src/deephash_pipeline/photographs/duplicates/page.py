"""Groups of duplicates as one HTML page: a file that needs no other, or a page of the service."""

import base64
import os
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from PIL import Image

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.outputs import starts_with
from deephash_pipeline.common.templates import render
from deephash_pipeline.images.decoding.decode import BrokenImageError, decode_image
from deephash_pipeline.photographs import LOOK
from deephash_pipeline.photographs.duplicates.groups import Photo
from deephash_pipeline.photographs.duplicates.levels import Level

if TYPE_CHECKING:
    from deephash_pipeline.photographs.duplicates.finding import Duplicates

THUMBNAIL_SIDE, QUALITY = 240, 80
SHOWN = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".avif")
"""Suffixes of what every browser shows."""
UNITS = ("bytes", "kB", "MB", "GB", "TB")
TEMPLATE = Path(__file__).with_name("page.html.j2")
STYLE, SCRIPT = TEMPLATE.with_name("page.css"), TEMPLATE.with_name("page.js")
is_page = starts_with(TEMPLATE.read_text(encoding="utf-8").partition('<meta name="viewport')[0])
"""Tells whether a file is a page of this command."""


class Shown(NamedTuple):
    """How a page shows and names pictures.

    Attributes:
        thumbnail: function that gives the address of a small picture, or ``data:``; empty for none.
        large: function that gives the address of a large one; empty for none.
        path: function that gives the path that stands in lists and scripts.
    """

    thumbnail: Callable[[Photo], str]
    large: Callable[[Photo], str]
    path: Callable[[Photo], str]


def render_page(
    found: "Duplicates | None",
    title: str,
    shown: Shown,
    service: Mapping[str, Any] | None = None,
) -> str:
    """Show each group side by side, with marks of what to keep that can be changed and saved as a list.

    Args:
        found: the groups; None where they are not there yet.
        title: heading of the page.
        shown: how pictures are shown and named.
        service: values of a page that a service shows: the ``index``, the ``level``, how many ``pictures`` it has and
            how long a search ``takes``, whether it is ``working`` and what is ``said`` of that, its ``failure``,
            whether it ``needs_token``.
    """
    members = [member for group in found.groups for member in group.members] if found else []
    return render(
        TEMPLATE,
        found=found,
        title=title,
        thumbnail=shown.thumbnail,
        name=shown.path,
        large=shown.large,
        folders=sorted({os.path.dirname(shown.path(member.photo)) for member in members} - {""}),
        look=LOOK.read_text(encoding="utf-8"),
        style=STYLE.read_text(encoding="utf-8"),
        script=SCRIPT.read_text(encoding="utf-8"),
        has_line_break=has_line_break,
        service=service,
        readable=readable_bytes,
        levels=list(Level),
    )


def absolute_path(photo: Photo) -> str:
    """The path of a file from the root, its links kept."""
    return str(Path(photo.name).absolute())


def file_address(photo: Photo) -> str:
    """Where a browser of the same machine finds the file itself; empty where it shows no files of this kind."""
    return photo.path.as_uri() if photo.path.suffix.lower() in SHOWN else ""


def has_line_break(name: str) -> bool:
    r"""Whether a list with a line for each name cannot have this one.

    Example:
        >>> has_line_break("a.png"), has_line_break("a\nb.png")
        (False, True)
    """
    return not {"\n", "\r"}.isdisjoint(name)


def embedded(photo: Photo) -> str:
    """A small JPEG as a data URI; empty if the file cannot be read any more."""
    scale = min(1.0, THUMBNAIL_SIDE / max(photo.width, photo.height))
    size = max(1, round(photo.height * scale)), max(1, round(photo.width * scale))
    try:
        pixels = decode_image(photo.path, size, 3)
    except (BrokenImageError, InputError):
        return ""
    buffer = BytesIO()
    Image.fromarray(pixels.transpose(1, 2, 0)).save(buffer, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def readable_bytes(count: float) -> str:
    """A number of bytes with three digits.

    Example:
        >>> readable_bytes(1_234_567), readable_bytes(87)
        ('1.23 MB', '87 bytes')
    """
    unit = 0
    while count >= 999.5 and unit < len(UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.3g} {UNITS[unit]}"
