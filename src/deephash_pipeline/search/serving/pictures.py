"""Bytes from outside -> pictures within limits; pictures -> thumbnails."""

import base64
import binascii
import io
from collections import OrderedDict
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np
from fastapi import HTTPException
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import stamp_of
from deephash_pipeline.images.decoding.as_shown import as_shown
from deephash_pipeline.images.decoding.decode import BrokenImageError, alone_if_large, decode_image
from deephash_pipeline.images.decoding.formats import FORMAT_NAMES, FORMATS
from deephash_pipeline.images.decoding.image_files import Channels
from deephash_pipeline.images.decoding.work import check_work

LARGEST_KEPT = 1024
JPEG_QUALITY = 85
MOST_KEPT_BYTES = 2**28


def from_base64(text: str) -> bytes:
    """Decode base64, also as a data: URL, and broken into lines as mail and command lines have it.

    Raises:
        HTTPException: 422, it is none.
    """
    encoded = text.partition(",")[2] if text.startswith("data:") else text
    try:
        return base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise HTTPException(422, f"image: no base64 ({error})") from error


def opened(content: bytes, most_pixels: int) -> Image.Image:
    """Open a picture, whose pixels are not decoded yet.

    Raises:
        HTTPException: 413, it has too many pixels; 400, it is no picture.
    """
    if not content:
        raise HTTPException(400, f"image: empty; send a file in {FORMAT_NAMES}")
    try:
        picture = Image.open(io.BytesIO(content), formats=FORMATS)
        check_work(picture)
    except Image.DecompressionBombError as error:
        raise HTTPException(413, f"image: more than {most_pixels:,} pixels; send a smaller one") from error
    except UnidentifiedImageError as error:
        raise HTTPException(400, f"image: no file in {FORMAT_NAMES}") from error
    except Exception as error:  # a damaged file can make Pillow's readers raise anything
        raise HTTPException(400, f"image: {' '.join(str(error).split()) or type(error).__name__}") from error
    if picture.width * picture.height > most_pixels:
        size = f"{picture.width} x {picture.height}"
        raise HTTPException(413, f"image: {size} pixels are more than {most_pixels:,}; send a smaller one")
    return picture


def read_picture(
    content: bytes, image_shape: tuple[Channels, int, int], most_pixels: int, keep: bool = False
) -> tuple[NDArray[np.uint8], Image.Image | None]:
    """Decode a picture as that of a file of the same bytes is decoded.

    Args:
        content: bytes of a file.
        image_shape: channels, height and width that the hasher takes.
        most_pixels: number of pixels; more are refused before any is decoded.
        keep: True to return also what an index keeps: turned upright, at most 1,024 pixels wide or high.

    Returns:
        The picture for the hasher, uint8 (C, H, W), and the one to keep.

    Raises:
        HTTPException: 413, it has too many pixels; 400, it is no picture, or damaged; 503, memory has run out.
    """
    picture = opened(content, most_pixels)
    channels, height, width = image_shape
    try:
        pixels = decode_image(io.BytesIO(content), (height, width), channels)
        return pixels, _upright(picture, LARGEST_KEPT) if keep else None
    except InputError as error:
        raise HTTPException(503, "the service is short of memory; send the picture again later") from error
    except (BrokenImageError, OSError, ValueError) as error:
        raise HTTPException(400, f"image: {error}") from error


def _upright(picture: Image.Image, size: int) -> Image.Image:
    picture.draft(None, (size, size))
    with alone_if_large(picture):
        upright = as_shown(picture)
    upright.thumbnail((size, size))
    return upright


class Thumbnail(NamedTuple):
    """A small picture: the content of its file, and the media type."""

    content: bytes
    kind: str


class Thumbnails:
    """Makes thumbnails, and keeps them in memory; those that were not asked for the longest give way to others.

    Args:
        most_bytes: number of bytes that are kept: 16 kB for each of 16,384. Of a photograph, 192 pixels take 6 to 9 kB.
    """

    def __init__(self, most_bytes: int = MOST_KEPT_BYTES) -> None:
        self.most_bytes, self.bytes = most_bytes, 0
        self._kept: OrderedDict[str, Thumbnail] = OrderedDict()
        self._lock = Lock()

    @staticmethod
    def key(path: Path, size: int) -> str:
        """Name a thumbnail; it is another once the file has changed."""
        return blake2b(f"{path} {stamp_of(path)} {size}".encode(), digest_size=16).hexdigest()

    def of(self, path: Path, size: int, key: str) -> Thumbnail:
        """A picture of at most `size` pixels in either direction, under its key.

        Raises:
            HTTPException: 404, there is no picture that can be read.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        try:
            made = _thumbnail(path, size)
        except Exception as error:
            raise HTTPException(404, "the picture of this item cannot be read; its file is gone or damaged") from error
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made
                self.bytes += len(made.content)
            while self.bytes > self.most_bytes:
                self.bytes -= len(self._kept.popitem(last=False)[1].content)
        return made


def _thumbnail(path: Path, size: int) -> Thumbnail:
    # What Pillow takes for sane is in indexes, and may be larger than what is sent.
    with Image.open(path, formats=FORMATS) as picture:
        check_work(picture)
        small = max(picture.size) <= size
        upright = _upright(picture, size)
    buffer = io.BytesIO()
    # Few pixels show every block of a JPEG.
    if small or upright.mode in ("LA", "RGBA"):
        upright.save(buffer, "PNG")
        return Thumbnail(buffer.getvalue(), "image/png")
    upright.save(buffer, "JPEG", quality=JPEG_QUALITY)
    return Thumbnail(buffer.getvalue(), "image/jpeg")
