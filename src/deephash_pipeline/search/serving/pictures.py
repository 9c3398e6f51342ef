"""Bytes from outside -> pictures within limits; pictures -> thumbnails."""

import base64
import binascii
import functools
import io
from pathlib import Path

import numpy as np
from fastapi import HTTPException
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.as_shown import as_shown
from deephash_pipeline.images.decoding.decode import BrokenImageError, decode_image
from deephash_pipeline.images.decoding.formats import FORMAT_NAMES, FORMATS
from deephash_pipeline.images.decoding.image_files import Channels

LARGEST_KEPT = 1024
JPEG_QUALITY = 85
THUMBNAILS_KEPT = 2048


def from_base64(text: str) -> bytes:
    """Decode base64, also as a data: URL.

    Raises:
        HTTPException: 422, it is none.
    """
    encoded = text.partition(",")[2] if text.startswith("data:") else text
    try:
        return base64.b64decode(encoded, validate=True)
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
    upright = as_shown(picture)
    upright.thumbnail((size, size))
    return upright


def thumbnail(path: Path, size: int, most_pixels: int) -> tuple[bytes, str]:
    """A picture of at most `size` pixels in either direction, and its media type.

    Raises:
        HTTPException: 404, there is no picture that can be read.
    """
    try:
        return _thumbnail(path, path.stat().st_mtime_ns, size, most_pixels)
    except Exception as error:
        raise HTTPException(404, "the picture of this item cannot be read; its file is gone or damaged") from error


@functools.lru_cache(THUMBNAILS_KEPT)
def _thumbnail(path: Path, _modified: int, size: int, most_pixels: int) -> tuple[bytes, str]:
    with Image.open(path, formats=FORMATS) as picture:
        if picture.width * picture.height > most_pixels:
            raise ValueError("too many pixels")
        small = max(picture.size) <= size
        upright = _upright(picture, size)
    buffer = io.BytesIO()
    # Few pixels show every block of a JPEG.
    if small or upright.mode in ("LA", "RGBA"):
        upright.save(buffer, "PNG")
        return buffer.getvalue(), "image/png"
    upright.save(buffer, "JPEG", quality=JPEG_QUALITY)
    return buffer.getvalue(), "image/jpeg"
