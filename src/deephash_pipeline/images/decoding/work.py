"""Refusing small files that take minutes to decode; what honest ones take is limited by their pixels and bytes."""

import re

from PIL import ExifTags, Image, ImageFile

# Each is a walk over all pixels. Ten are usual, a hundred are what libtiff allows: .6 s at 40 megapixels.
MOST_SCANS = 100
# Of a 170-megapixel panorama of 24 scans.
MOST_SCANNED_PIXELS = 2**32
# Tiles at the edges reach beyond an image, and the smallest image has one.
MOST_TILED_SHARE, SMALLEST_TILED = 4, 2**24
# Pillow reads them in Python, a million pixels in .16 s.
MOST_RUN_LENGTH_PIXELS = 2**23

SCAN = b"\xff\xda"
# What is no byte of a scan, and no restart within one.
MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
END, WITHOUT_LENGTH = 0xD9, {0x01, *range(0xD0, 0xD9)}


def check_work(image: Image.Image) -> None:
    """Refuse a file that takes far longer to decode than others of its size.

    Args:
        image: image that is opened and not yet decoded.

    Raises:
        ValueError: it is such a file; the message says why.

    Example:
        >>> check_work(Image.new("L", (8, 8)))
    """
    if not isinstance(image, ImageFile.ImageFile) or image.fp is None:
        return
    pixels = image.width * image.height
    if image.format in {"JPEG", "MPO"}:
        place = image.fp.tell()
        image.fp.seek(0)
        scans = count_scans(image.fp.read())
        image.fp.seek(place)
        if scans > MOST_SCANS or scans * pixels > MOST_SCANNED_PIXELS:
            raise ValueError(f"a JPEG of {scans:,} scans, which would take too long to decode; save it anew")
    elif image.format == "TIFF":
        tags = image.tag_v2  # type: ignore[attr-defined]
        offsets = tags.get(ExifTags.Base.TileOffsets, ())
        tiled = len(offsets) * tags.get(ExifTags.Base.TileWidth, 0) * tags.get(ExifTags.Base.TileLength, 0)
        if tiled > max(MOST_TILED_SHARE * pixels, SMALLEST_TILED):
            raise ValueError("a TIFF whose tiles are far larger than its image; save it anew")
    elif any(tile.codec_name == "bmp_rle" for tile in image.tile) and pixels > MOST_RUN_LENGTH_PIXELS:
        raise ValueError("a BMP with run lengths and too many pixels; save it as PNG")


def count_scans(content: bytes) -> int:
    r"""Scans of a JPEG, up to the end of its first image.

    Example:
        >>> count_scans(b"\xff\xd8\xff\xda\x00\x02.\xff\xda\x00\x02.\xff\xd9\xff\xda")
        2
    """
    # Quick, and never too few; what is embedded, as a thumbnail, counts too.
    most = content.count(SCAN)
    if most <= 1:
        return most
    scans, place = 0, 2
    while marker := MARKER.search(content, place):
        kind, place = content[marker.end() - 1], marker.end()
        if kind == END:
            break
        scans += kind == SCAN[1]
        if kind not in WITHOUT_LENGTH:
            place += int.from_bytes(content[place : place + 2], "big")
    return scans
