"""Images of whoever made them -> pixels, within a limit of seconds.

A thread cannot be ended. So what may take minutes, whatever its size, is decoded in a process that can be; the
other files, by far the most, are decoded in the thread that asks.
"""

import os
import stat
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageFile

from deephash_pipeline.images.decoding.apart import Decoders
from deephash_pipeline.images.decoding.decode import decode_image
from deephash_pipeline.images.decoding.formats import FORMATS
from deephash_pipeline.images.decoding.image_files import Channels
from deephash_pipeline.images.decoding.work import SCAN

SECONDS_FOR_A_FILE = 60.0
"""For a file; a panorama of 170 megapixels takes up to twenty, by its format."""
# A progressive JPEG has ten, and the small one within it another.
USUAL_SCANS = 12
JPEG = b"\xff\xd8"
# Their decoders take no longer than the pixels of an image say.
BOUNDED = (b"\x89PNG", b"GIF8", b"BM", b"RIFF")
# Their decoders do what the file says, whatever its pixels.
UNBOUNDED = {"AVIF", "HEIF", "JPEG2000"}
JPEG_WITHIN_TIFF = {6, 7}

DECODERS = Decoders(SECONDS_FOR_A_FILE, patience=-1)


def decode_limited(
    image: str | Path | bytes, image_size: int | tuple[int, int] | None, channels: Channels
) -> NDArray[np.uint8]:
    """Decode a file or its content as `decode_image` does, for at most a minute.

    Raises:
        BrokenImageError: also if it takes longer, or its decoder crashes.
        InputError: the machine is at fault and not the file.

    Example:
        >>> from io import BytesIO
        >>> buffer = BytesIO()
        >>> Image.new("L", (40, 30), 7).save(buffer, "JPEG2000")
        >>> decode_limited(buffer.getvalue(), 1, 1).tolist()
        [[[7]]]
    """
    given = BytesIO(image) if isinstance(image, bytes) else image
    if may_take_long(image):
        return DECODERS.decode(given, image_size, channels)
    return decode_image(given, image_size, channels)


def may_take_long(image: str | Path | bytes) -> bool:
    """Tell of a file or its content whether decoding may take minutes, whatever its size in pixels.

    Example:
        >>> may_take_long(b"GIF89a"), may_take_long(b"no image"), may_take_long("missing.heic")
        (False, False, False)
    """
    if isinstance(image, bytes):
        if image.startswith(JPEG):
            return image.count(SCAN) > USUAL_SCANS
        return not image.startswith(BOUNDED) and _is_unbounded(BytesIO(image))
    try:
        if not stat.S_ISREG(os.stat(image).st_mode):
            return False
        with open(image, "rb") as file:
            head = file.read(len(BOUNDED[0]))
            if head.startswith(JPEG):
                return may_take_long(head + file.read())
    except (OSError, MemoryError):  # decoding says it
        return False
    return not head.startswith(BOUNDED) and _is_unbounded(image)


def _is_unbounded(image: str | Path | BytesIO) -> bool:
    try:
        with Image.open(image, formats=FORMATS) as opened:
            if opened.format == "TIFF":
                return opened.tag_v2.get(ExifTags.Base.Compression) in JPEG_WITHIN_TIFF  # type: ignore[attr-defined]
            # Pillow reads all but one kind of PPM in Python.
            in_python = isinstance(opened, ImageFile.ImageFile) and opened.format == "PPM" and _is_in_python(opened)
            return opened.format in UNBOUNDED or in_python
    except Exception:  # decoding says what is wrong
        return False


def _is_in_python(image: ImageFile.ImageFile) -> bool:
    return any(tile.codec_name != "raw" for tile in image.tile)
