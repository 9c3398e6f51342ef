"""An image of any mode -> the colours that a browser shows, 8 bits and alpha."""

import re
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageCms, ImageFile, ImageOps
from PIL.PngImagePlugin import PngImageFile

# Space of a colour profile -> mode of what it is applied to.
PROFILED = {"GRAY": "L", "RGB": "RGB", "CMYK": "CMYK"}
# Grey of a PNG with few bits: how many values there are, and what lies between two of the decoded ones.
GREY_STEPS = {"L;2": (4, 85), "L;4": (16, 17), "L": (256, 1)}
UNREADABLE_PROFILE = (OSError, ValueError, KeyError, ImageCms.PyCMSError)


def as_shown(image: Image.Image) -> Image.Image:
    """Read an image, which is changed: turned as its EXIF says, of mode L, LA, RGB or RGBA, in sRGB.

    Raises:
        ValueError: it has numbers of 32 bits, or signed ones of 16.

    Example:
        >>> image = Image.new("L", (1, 1), 7)
        >>> image.info["transparency"] = 7
        >>> as_shown(image).getpixel((0, 0))
        (7, 0)
    """
    stored = str(image.tile[0].args) if isinstance(image, ImageFile.ImageFile) and image.tile else ""
    low = _low_bytes(image) if stored == "RGB;16B" and "transparency" in image.info else None
    # First, so that what is wrong with pixels is not taken for damage of EXIF.
    image.load()
    if isinstance(image, PngImageFile):
        _apply_key(image, stored, low)
    # Without EXIF that can be read, or written again, the image is whole.
    with suppress(Exception):
        ImageOps.exif_transpose(image, in_place=True)
    # Pillow keeps the 16 bits of a PGM file in 32.
    sixteen = image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PPM")
    if image.mode in {"I", "F"} and not sixteen:
        numbers = "signed numbers of 16 bits" if re.search("16B?S", stored) else "numbers of 32 bits"
        raise ValueError(f"{numbers} (mode {image.mode}); convert it to 8 or 16 without a sign")
    info, grey = image.info, image.mode in {"1", "L", "LA", "La"}
    if sixteen:
        values = np.asarray(image)
        if getattr(image, "tag_v2", {}).get(ExifTags.Base.PhotometricInterpretation) == 0:
            values = 0xFFFF - values
        # Pillow clips 16-bit grey at 255 instead of scaling it, which leaves a white image.
        image = Image.fromarray((values >> (4 if "I;12" in stored else 8)).astype(np.uint8))
        if "transparency" in info:
            image.putalpha(Image.fromarray(np.where(values == info["transparency"], 0, 255).astype(np.uint8)))
    elif image.has_transparency_data:
        image = in_mode(image, "LA" if grey else "RGBA")
    elif image.mode != "CMYK":
        image = in_mode(image, "L" if grey else "RGB")
    return _in_srgb(image, info)


def _low_bytes(image: Image.Image) -> NDArray[np.uint8] | None:
    """The low bytes of a PNG of 16-bit colours that is not yet read, of which Pillow keeps the high ones."""
    if not isinstance(image, PngImageFile) or image.fp is None or image.tell():
        return None
    place = image.fp.tell()
    image.fp.seek(0)
    content = image.fp.read()
    image.fp.seek(place)
    with Image.open(BytesIO(content), formats=("PNG",)) as again:
        assert isinstance(again, ImageFile.ImageFile)
        # Of numbers whose low byte is said to come first Pillow keeps the second.
        again.tile = [part._replace(args="RGB;16L") for part in again.tile]
        return np.asarray(again)


def _apply_key(image: PngImageFile, stored: str, low: NDArray[np.uint8] | None) -> None:
    """Bring the transparent value of a PNG, given as its file has it, into the numbers of the decoded image.

    As decoders do, it takes as many bits of it as pixels have.
    """
    key = image.info.get("transparency")
    if isinstance(key, int) and stored in GREY_STEPS:
        levels, step = GREY_STEPS[stored]
        image.info["transparency"] = key % levels * step
    elif isinstance(key, tuple) and low is not None:
        values = np.asarray(image).astype(np.uint16) << 8 | low
        shown = (values != np.array(key, dtype=np.uint16)).any(axis=2)
        del image.info["transparency"]
        image.putalpha(Image.fromarray(np.where(shown, 255, 0).astype(np.uint8)))
    elif isinstance(key, tuple) and stored == "RGB":
        image.info["transparency"] = tuple(part % 256 for part in key)


def _in_srgb(image: Image.Image, info: dict[str | tuple[int, int], Any]) -> Image.Image:
    """Apply a colour profile, unless it is damaged or one of other images."""
    colours = image.convert(image.mode.removesuffix("A")) if image.mode in {"LA", "RGBA"} else image
    with suppress(*UNREADABLE_PROFILE):
        mode, transform = _to_srgb(info["icc_profile"])
        if mode == "RGB" and colours.mode == "L":
            colours = colours.convert("RGB")
        if colours.mode == mode:
            colours = transform.apply(colours)
    if colours.mode == "CMYK":
        return colours.convert("RGB")
    if colours is not image and image.mode in {"LA", "RGBA"}:
        colours.putalpha(image.getchannel("A"))
    return colours


@lru_cache(16)
def _to_srgb(profile: bytes) -> tuple[str, ImageCms.ImageCmsTransform]:
    """Mode of the images that a profile is of, and what brings them to sRGB."""
    source, srgb = (ImageCms.ImageCmsProfile(some) for some in (BytesIO(profile), ImageCms.createProfile("sRGB")))
    mode = PROFILED[source.profile.xcolor_space.strip()]
    # Several threads use it at once.
    return mode, ImageCms.ImageCmsTransform(source, srgb, mode, "RGB", flags=ImageCms.Flags.NOCACHE)


def in_mode(image: Image.Image, mode: str) -> Image.Image:
    """Convert an image to a mode.

    Example:
        >>> in_mode(Image.new("RGB", (2, 2), "red"), "L").getpixel((0, 0))
        76
    """
    # Pillow would copy an image that has the mode already.
    return image if image.mode == mode else image.convert(mode)
