"""An image of any mode -> the colours that a browser shows, 8 bits and alpha."""

import struct
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np
from PIL import ExifTags, Image, ImageCms, ImageFile, ImageOps

# Space of a colour profile -> mode of what it is applied to.
PROFILED = {"GRAY": "L", "RGB": "RGB", "CMYK": "CMYK"}
# PNG's grey of few bits is spread over 0..255, its transparent value is not.
SPREAD = {"L;2": 85, "L;4": 17}
# One of their values may stand for what is transparent.
KEYED = {"1", "L", "I;16", "RGB"}
# Of a PNG, which browsers take for sRGB's.
USUAL_GAMMA, NEAR = 0.45455, 0.001
UNREADABLE_PROFILE = (OSError, ValueError, KeyError, ImageCms.PyCMSError)
UNREADABLE_EXIF = (SyntaxError, ValueError, struct.error)


def as_shown(image: Image.Image) -> Image.Image:
    """Read an image, which is changed: turned as its EXIF says, of mode L, LA, RGB or RGBA, in sRGB.

    Raises:
        ValueError: it has numbers of 32 bits.

    Example:
        >>> image = Image.new("L", (1, 1), 7)
        >>> image.info["transparency"] = 7
        >>> as_shown(image).getpixel((0, 0))
        (7, 0)
    """
    tile = image.tile[0] if isinstance(image, ImageFile.ImageFile) and image.tile else None
    stored = "" if tile is None else str(tile.args)
    key = image.info.pop("transparency", None) if image.mode in KEYED else None
    low = None if key is None or stored != "RGB;16B" else _low_bytes(image)
    # First, so that what is wrong with pixels is not taken for damage of EXIF.
    image.load()
    for part in filter(None, (image, low)):
        # Without EXIF that can be read the image is whole.
        with suppress(*UNREADABLE_EXIF):
            ImageOps.exif_transpose(part, in_place=True)
    # Pillow keeps the 16 bits of a PGM file in 32.
    sixteen = image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PPM")
    if image.mode in {"I", "F"} and not sixteen:
        raise ValueError(f"numbers of 32 bits (mode {image.mode}); convert it to 8 or 16")
    info = image.info
    values = np.asarray(image) if key is not None or sixteen else None
    if values is not None and sixteen:
        if getattr(image, "tag_v2", {}).get(ExifTags.Base.PhotometricInterpretation) == 0:
            values = 0xFFFF - values
        # Pillow clips 16-bit grey at 255 instead of scaling it, which leaves a white image.
        image = Image.fromarray((values >> (4 if "I;12" in stored else 8)).astype(np.uint8))
    grey = image.mode in {"1", "L", "LA", "La"}
    if values is not None and key is not None:
        if low is not None:
            values = values.astype(np.uint16) << 8 | np.asarray(low)
        opaque = np.atleast_3d(values != np.array(key) * SPREAD.get(stored, 1)).any(axis=2)
        image = image.convert("L" if grey else "RGB")
        image.putalpha(Image.fromarray(opaque))
    elif image.has_transparency_data:
        image = in_mode(image, "LA" if grey else "RGBA")
    elif image.mode != "CMYK":
        image = in_mode(image, "L" if grey else "RGB")
    if tile is not None and tile.codec_name == "gif" and tile.extents not in {None, (0, 0, *image.size)}:
        # Around a first frame that is smaller Pillow shows its first colour.
        image, frame = Image.new("RGBA", image.size), image.convert("RGBA").crop(tile.extents)
        image.paste(frame, tile.extents)
    return _in_srgb(image, info)


def _low_bytes(image: Image.Image) -> Image.Image:
    """Read the lower halves of 16-bit colours, of which Pillow keeps the upper ones."""
    assert isinstance(image, ImageFile.ImageFile)
    source = image.filename or image.fp
    assert source is not None
    low = Image.open(source, formats=["PNG"])
    low.tile = [low.tile[0]._replace(args="RGB;16L")]
    low.load()
    return low


def _in_srgb(image: Image.Image, info: dict[str | tuple[int, int], Any]) -> Image.Image:
    """Apply a colour profile, unless it is damaged or one of other images; else the gamma of a PNG."""
    colours = image.convert(image.mode.removesuffix("A")) if image.mode in {"LA", "RGBA"} else image
    with suppress(*UNREADABLE_PROFILE):
        mode, transform = _to_srgb(info["icc_profile"])
        if mode == "RGB" and colours.mode == "L":
            colours = colours.convert("RGB")
        if colours.mode == mode:
            colours = transform.apply(colours)
    gamma = info.get("gamma", USUAL_GAMMA)
    if not {"icc_profile", "srgb"} & set(info) and abs(gamma - USUAL_GAMMA) > NEAR and gamma > 0:
        linear = (np.arange(256) / 255) ** (1 / gamma)
        curve = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
        colours = colours.point([round(255 * value) for value in curve.tolist()] * len(colours.getbands()))
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
