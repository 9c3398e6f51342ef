"""One image, a file or one in memory -> pixels, whatever its mode."""

import errno
import re
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import BytesIO
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile, UnidentifiedImageError

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.as_shown import as_shown, in_mode
from deephash_pipeline.images.decoding.formats import FORMAT_NAMES, FORMATS, HEIC_REMEDY, check_readable, lacks_reader
from deephash_pipeline.images.decoding.image_files import Channels
from deephash_pipeline.images.decoding.work import check_work

MODES = {1: "L", 3: "RGB"}
FAULTS_OF_THE_MACHINE = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE, errno.ETIMEDOUT}
# Large enough a reserve that what JPEG's decoder or a box filter has shrunk looks the same after the bilinear filter.
REDUCING_GAP = 3
LARGE_IMAGE_PIXELS = 2**24
# A panorama of 170 million pixels takes 0.7 to 1.4 GB: several threads must not decode one each.
ONE_LARGE_IMAGE = threading.Lock()
# Pillow reads the pixels of an image when they are first asked for, which two threads must not do at once.
ONE_READER = threading.Lock()
# The WebP decoder keeps two canvases of 4 bytes per pixel, and says nothing of memory where there is not enough.
WEBP_BYTES = 2 * 4 * LARGE_IMAGE_PIXELS

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

    It looks as a browser shows it on white: turned as its EXIF data say, an animation by its first frame, 16 bits
    scaled to 8, what is transparent white, a colour profile applied. Grey becomes colour or colour grey as asked. A
    large JPEG is shrunk while it is decoded.

    Args:
        image: path of a file in one of `formats.FORMATS`, or one that is open; no other format is opened, whatever
            the name, and no pipe or device. Or an image of Pillow, which is left as it is; one that is opened and not
            yet read gives the same pixels as its file.
        image_size: height and width in pixels, one number where they are equal; other images are resized bilinearly,
            their aspect given up as in Caffe's `convert_imageset`. None for the image's own size.
        channels: 1 for grey, 3 for colour.

    Returns:
        uint8 of shape (channels, height, width).

    Raises:
        BrokenImageError: if the file cannot be read or decoded, has more pixels than Pillow takes for sane, takes far
            longer to decode than others of its size, or has numbers of 32 bits or with a sign, whose black and white
            are not known.
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
    if isinstance(image, Image.Image):
        with ONE_READER:
            content = _unread(image)
            if content is None:
                check_work(image)
                image.load()
        with image.copy() if content is None else Image.open(BytesIO(content)) as copy:
            check_work(copy)
            yield copy
    else:
        if isinstance(image, str | Path):
            check_readable(image)
        with Image.open(image, formats=FORMATS) as readable:
            check_work(readable)
            yield readable


def _unread(image: Image.Image) -> bytes | None:
    """Content of the file of an image, unless its pixels are read, or those of a later frame are asked for."""
    # `tile` says what is still to be read; once all is, the caller may have drawn on it.
    if not isinstance(image, ImageFile.ImageFile) or not image.tile or image.tell() or image.fp is None:
        return None
    place = image.fp.tell()
    image.fp.seek(0)
    content = image.fp.read()
    image.fp.seek(place)
    return content


def _fitted(image: Image.Image, size: tuple[int, int] | None, channels: Channels) -> Image.Image:
    if size is not None:
        image.draft(None, (REDUCING_GAP * size[1], REDUCING_GAP * size[0]))
    with alone_if_large(image):
        full = as_shown(image)
        if full.mode in {"L", "RGB"}:
            full = in_mode(full, MODES[channels])
        if size is not None:
            full = full.resize((size[1], size[0]), Image.Resampling.BILINEAR, reducing_gap=REDUCING_GAP)
    return _on_white(full, MODES[channels])


def alone_if_large(image: Image.Image) -> AbstractContextManager[object]:
    """Give what is to be held while an image is decoded, so that no two large ones are in memory at once.

    Example:
        >>> with alone_if_large(Image.new("1", (4097, 4097))):
        ...     ONE_LARGE_IMAGE.locked()
        True
    """
    return ONE_LARGE_IMAGE if image.width * image.height > LARGE_IMAGE_PIXELS else nullcontext()


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
    heic = isinstance(image, str | Path) and lacks_reader(image)
    return f"{reason}: {HEIC_REMEDY}" if heic else f"{reason} as {FORMAT_NAMES}"


def _on_white(image: Image.Image, mode: str) -> Image.Image:
    if image.mode not in {"LA", "RGBA"}:
        return image
    white = Image.new(mode, image.size, "white")
    white.paste(image.convert(mode), mask=image.getchannel("A"))
    return white
