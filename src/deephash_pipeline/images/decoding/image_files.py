"""One image file -> pixels, whatever its mode."""

import errno
import threading
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from deephash_pipeline.errors import InputError
from deephash_pipeline.images.decoding.files import Channels

MODES = {1: "L", 3: "RGB"}
FAULTS_OF_THE_MACHINE = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE, errno.ETIMEDOUT}
# Large enough a reserve that what JPEG's decoder or a box filter has shrunk looks the same after the bilinear filter.
REDUCING_GAP = 3
LARGE = 2**24
# A panorama of 170 million pixels takes 0.7 to 1.4 GB: several threads must not hold one each.
ONE_LARGE_IMAGE = threading.Lock()


class BrokenImageError(Exception):
    """A file that is no image, or not a whole one; the message is the reason, in one line."""


def decode_image(path: Path, image_size: int, channels: Channels) -> NDArray[np.uint8]:
    """Decode one image.

    It is turned as its EXIF data say, an animation is its first frame, 16 bits are scaled to 8, what is transparent
    shows white, and grey becomes colour or colour grey as asked. A large JPEG is shrunk while it is decoded.

    Args:
        path: of a file in any format that Pillow reads.
        image_size: height and width in pixels; other images are resized bilinearly, their aspect given up as in Caffe's
            `convert_imageset`.
        channels: 1 for grey, 3 for colour.

    Returns:
        uint8 of shape (channels, image_size, image_size).

    Raises:
        BrokenImageError: if the file cannot be read or decoded, has more pixels than Pillow takes for sane, or
            numbers of 32 bits, whose black and white nothing tells.
        InputError: if the machine is at fault and not the file: out of memory or of open files, or the disk fails.
    """
    size = (image_size, image_size)
    try:
        with Image.open(path) as image:
            image.draft(None, (REDUCING_GAP * image_size, REDUCING_GAP * image_size))
            with ONE_LARGE_IMAGE if image.width * image.height > LARGE else nullcontext():
                ImageOps.exif_transpose(image, in_place=True)
                full = _in_mode(_eight_bits(image), "RGBA" if image.has_transparency_data else MODES[channels])
                small = full.resize(size, Image.Resampling.BILINEAR, reducing_gap=REDUCING_GAP)
            pixels = np.asarray(_on_white(small, MODES[channels]))
    except Exception as error:  # a damaged file can make Pillow's readers raise anything
        if isinstance(error, MemoryError) or getattr(error, "errno", None) in FAULTS_OF_THE_MACHINE:
            raise InputError(
                f"{path} cannot be read at present ({str(error) or 'out of memory'}): mend that and run again, what is "
                "decoded is kept; or remove the file."
            ) from error
        raise BrokenImageError(" ".join(str(error).split()) or type(error).__name__) from error
    return pixels.reshape(image_size, image_size, channels).transpose(2, 0, 1)


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
