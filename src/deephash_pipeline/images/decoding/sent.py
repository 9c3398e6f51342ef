"""Bytes that somebody sends -> pixels for a hasher, and a picture to keep."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.as_shown import as_shown
from deephash_pipeline.images.decoding.decode import BrokenImageError, alone_if_large, decode_image
from deephash_pipeline.images.decoding.formats import FORMAT_NAMES, FORMATS
from deephash_pipeline.images.decoding.image_files import Channels
from deephash_pipeline.images.decoding.work import check_work

LARGEST_KEPT = 1024


class TooManyPixelsError(BrokenImageError):
    """A picture beyond the limit of who takes it."""


def read_sent(
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
        TooManyPixelsError: it has more.
        BrokenImageError: it is no picture, or damaged.
        InputError: memory has run out.
    """
    picture = _opened(content, most_pixels)
    channels, height, width = image_shape
    pixels = decode_image(io.BytesIO(content), (height, width), channels)
    try:
        return pixels, upright(picture, LARGEST_KEPT) if keep else None
    except MemoryError as error:
        raise InputError("the picture cannot be kept (out of memory): try again later") from error
    except Exception as error:
        raise BrokenImageError(_line(error)) from error


def _opened(content: bytes, most_pixels: int) -> Image.Image:
    if not content:
        raise BrokenImageError(f"empty; send a file in {FORMAT_NAMES}")
    try:
        picture = Image.open(io.BytesIO(content), formats=FORMATS)
        check_work(picture)
    except Image.DecompressionBombError as error:
        raise TooManyPixelsError(f"more than {most_pixels:,} pixels; send a smaller one") from error
    except UnidentifiedImageError as error:
        raise BrokenImageError(f"no file in {FORMAT_NAMES}") from error
    except Exception as error:  # a damaged file can make Pillow's readers raise anything
        raise BrokenImageError(_line(error)) from error
    if picture.width * picture.height > most_pixels:
        size = f"{picture.width} x {picture.height}"
        raise TooManyPixelsError(f"{size} pixels are more than {most_pixels:,}; send a smaller one")
    return picture


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def upright(picture: Image.Image, size: int) -> Image.Image:
    """Turn a picture as its EXIF says, at most `size` pixels wide or high.

    Example:
        >>> upright(Image.new("RGB", (40, 20)), 10).size
        (10, 5)
    """
    picture.draft(None, (size, size))
    with alone_if_large(picture):
        turned = as_shown(picture)
    turned.thumbnail((size, size))
    return turned
