"""Small pictures of files, as pages show them."""

import base64
import io
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from deephash_pipeline.images.decoding.formats import FORMATS
from deephash_pipeline.images.decoding.sent import upright
from deephash_pipeline.images.decoding.work import check_work

JPEG_QUALITY = 85


class Thumbnail(NamedTuple):
    """A small picture: the content of its file, and the media type."""

    content: bytes
    kind: str

    @property
    def address(self) -> str:
        """The picture itself, as an address that a page may have in it.

        Example:
            >>> Thumbnail(b"a", "image/png").address
            'data:image/png;base64,YQ=='
        """
        return f"data:{self.kind};base64,{base64.b64encode(self.content).decode()}"


def thumbnail(path: Path, size: int) -> Thumbnail:
    """Make a picture of at most `size` pixels in either direction.

    Raises:
        Exception: whatever Pillow raises for what is no picture.
    """
    # What Pillow takes for sane is in indexes, and may be larger than what is sent.
    with Image.open(path, formats=FORMATS) as picture:
        check_work(picture)
        small = max(picture.size) <= size
        shown = upright(picture, size)
    buffer = io.BytesIO()
    # Few pixels show every block of a JPEG.
    if small or shown.mode in ("LA", "RGBA"):
        shown.save(buffer, "PNG")
        return Thumbnail(buffer.getvalue(), "image/png")
    shown.save(buffer, "JPEG", quality=JPEG_QUALITY)
    return Thumbnail(buffer.getvalue(), "image/jpeg")
