"""One image, a file or one in memory -> pixels, whatever its mode."""

import errno
import re
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError
from PIL.JpegImagePlugin import JpegImageFile

from deephash_pipeline.errors import InputError
from deephash_pipeline.images.decoding.formats import (
    FORMAT_NAMES,
    FORMATS,
    HEIC_REMEDY,
    HEIC_SUFFIXES,
    check_readable,
)
from deephash_pipeline.images.decoding.image_files import Channels

MODES = {1: "L", 3: "RGB"}
UNREADABLE_EXIF = (SyntaxError, ValueError, struct.error)
FAULTS_OF_THE_MACHINE = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE, errno.ETIMEDOUT}
# Large enough a reserve that what JPEG's decoder or a box filter has shrunk looks the same after the bilinear filter.
REDUCING_GAP = 3
LARGE = 2**24
# A panorama of 170 million pixels takes 0.7 to 1.4 GB: several threads must not decode one each.
ONE_LARGE_IMAGE = threading.Lock()
# Pillow reads the pixels of an image when they are first asked for, which two threads must not do at once.
ONE_READER = threading.Lock()
# The WebP decoder keeps two canvases of 4 bytes per pixel, and says nothing of memory where there is not enough.
WEBP_BYTES = 2 * 4 * LARGE

OBJECT = re.compile(r"<[\w.]+ object at 0x[0-9a-f]+>")


class BrokenImageError(Exception):
    """A file that is no image, or not a whole one; the message is the reason, in one line.

    Example:
        >>> from io import BytesIO
        >>> try:
        ...     decode_image(BytesIO(b"no image"), image_size=2, channels=1)
        ... except BrokenImageError as error:
        ...     "cannot identify image file" in str(error)
        True
    """


def decode_image(
    image: str | Path | IO[bytes] | Image.Image, image_size: int | tuple[int, int] | None, channels: Channels
) -> NDArray[np.uint8]:
    """Decode one image.

    It is turned as its EXIF data say, an animation is its first frame, 16 bits are scaled to 8, what is transparent
    shows white, and grey becomes colour or colour grey as asked. A large JPEG is shrunk while it is decoded.

    Args:
        image: path of a file, or one that is open, in one of `formats.FORMATS`; no other format is opened, whatever
            the name, and no pipe or device. Or an image of Pillow, which is left as it is; a JPEG that is opened and
            not yet read gives the same pixels as its path.
        image_size: height and width in pixels, one number where they are equal; other images are resized bilinearly,
            their aspect given up as in Caffe's `convert_imageset`. None for the image's own size.
        channels: 1 for grey, 3 for colour.

    Returns:
        uint8 of shape (channels, height, width).

    Raises:
        BrokenImageError: if the file cannot be read or decoded, has more pixels than Pillow takes for sane, or
            numbers of 32 bits, whose black and white are not known.
        InputError: if the machine is at fault and not the file: out of memory or of open files, or the disk fails.

    Example:
        >>> decode_image(Image.new("RGB", (6, 4), "red"), image_size=2, channels=1).tolist()
        [[[76, 76], [76, 76]]]
    """
    size = (image_size, image_size) if isinstance(image_size, int) else image_size
    try:
        with _opened(image) as readable:
            pixels = np.asarray(_fitted(readable, size, channels))
    except Exception as error:  # a damaged file can make Pillow's readers raise anything
        if _machine_is_at_fault(error):
            name = f"an image of mode {image.mode}" if isinstance(image, Image.Image) else image
            raise InputError(
                f"{name} cannot be read at present ({str(error) or 'out of memory'}): mend that and run again, what is "
                "decoded is kept; or remove the file."
            ) from error
        raise BrokenImageError(_reason(error, image)) from error
    return pixels.reshape(*pixels.shape[:2], channels).transpose(2, 0, 1)


@contextmanager
def _opened(image: str | Path | IO[bytes] | Image.Image) -> Iterator[Image.Image]:
    """Open a file, or copy an image of the caller's: what is yielded may be changed."""
    if isinstance(image, JpegImageFile) and _is_its_file(image):
        image = str(image.filename)
    if isinstance(image, Image.Image):
        with ONE_READER:
            image.load()
        yield _turned_copy(image)
    else:
        if isinstance(image, str | Path):
            check_readable(image)
        with Image.open(image, formats=FORMATS) as readable:
            yield readable


def _is_its_file(image: JpegImageFile) -> bool:
    # `tile` says what is still to be read; once all is, the caller may have drawn on it.
    return bool(image.tile) and image.tell() == 0 and isinstance(image.filename, str) and Path(image.filename).is_file()


def _fitted(image: Image.Image, size: tuple[int, int] | None, channels: Channels) -> Image.Image:
    if size is not None:
        image.draft(None, (REDUCING_GAP * size[1], REDUCING_GAP * size[0]))
    with ONE_LARGE_IMAGE if image.width * image.height > LARGE else nullcontext():
        # First, so that what is wrong with pixels is not taken for damage of EXIF.
        image.load()
        _turn(image)
        full = _in_mode(_eight_bits(image), "RGBA" if image.has_transparency_data else MODES[channels])
        if size is not None:
            full = full.resize((size[1], size[0]), Image.Resampling.BILINEAR, reducing_gap=REDUCING_GAP)
    return _on_white(full, MODES[channels])


def _turned_copy(image: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    except UNREADABLE_EXIF:
        return image.copy()


def _turn(image: Image.Image) -> None:
    """Turn an image as its EXIF says, if that can be read: without it the image is whole."""
    with suppress(*UNREADABLE_EXIF):
        ImageOps.exif_transpose(image, in_place=True)


def _machine_is_at_fault(error: Exception) -> bool:
    if isinstance(error, MemoryError) or getattr(error, "errno", None) in FAULTS_OF_THE_MACHINE:
        return True
    if "create decoder object" not in str(error):
        return False
    try:
        bytes(WEBP_BYTES)
    except MemoryError:
        return True
    return False


def _reason(error: Exception, image: object) -> str:
    # Where in memory a file's content is differs from run to run.
    reason = OBJECT.sub("", " ".join(str(error).split())).strip() or type(error).__name__
    if not isinstance(error, UnidentifiedImageError):
        return reason
    heic = isinstance(image, str | Path) and Path(image).suffix.lower() in HEIC_SUFFIXES and "HEIF" not in FORMATS
    return f"{reason}: {HEIC_REMEDY}" if heic else f"{reason} as {FORMAT_NAMES}"


def _eight_bits(image: Image.Image) -> Image.Image:
    if image.mode in {"I", "F"}:
        raise ValueError(f"numbers of 32 bits (mode {image.mode}); convert it to 8 or 16")
    if not image.mode.startswith("I;16"):
        return image
    # Pillow clips 16-bit grey at 255 instead of scaling it, which leaves a white image.
    return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))


def _in_mode(image: Image.Image, mode: str) -> Image.Image:
    # Pillow would copy an image that has the mode already.
    return image if image.mode == mode else image.convert(mode)


def _on_white(image: Image.Image, mode: str) -> Image.Image:
    if image.mode != "RGBA":
        return image
    white = Image.new(mode, image.size, "white")
    white.paste(image.convert(mode), mask=image.getchannel("A"))
    return white
