"""Small files that take long to decode."""

import struct
import zlib
from io import BytesIO

from PIL import Image

# Pillow reads numbers up to 254 one by one, for ten seconds here.
SLOW = b"P5 3000 3000 254\n" + bytes(9_000_000)


def _segment(marker, content):
    return bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content


def _bits(digits):
    padded = digits + "1" * (-len(digits) % 8)
    return int(padded, 2).to_bytes(len(padded) // 8, "big").replace(b"\xff", b"\xff\0")


def jpeg_of_scans(side, count):
    """A grey progressive JPEG: a scan of mean values, and so many that say nothing of the rest."""
    quantised = _segment(0xDB, b"\0" + b"\1" * 64)
    frame = _segment(0xC2, struct.pack(">BHHB", 8, side, side, 1) + b"\1\x11\0")
    # One code each: a difference of 0, and "nothing in the next 32,767 blocks".
    codes = b"".join(_segment(0xC4, bytes([kind, 1, *[0] * 15, value])) for kind, value in ((0, 0), (0x10, 0xE0)))
    blocks = ((side + 7) // 8) ** 2
    means = _segment(0xDA, b"\1\1\0\0\0\0") + _bits("0" * blocks)
    nothing = _segment(0xDA, b"\1\1\0\1\x3f\0") + _bits(("0" + "1" * 14) * -(-blocks // 32767))
    return b"\xff\xd8" + quantised + frame + codes + means + nothing * count + b"\xff\xd9"


def sequential_jpeg_of_scans(side, count):
    """A colour JPEG whose first component comes again and again."""
    buffer = BytesIO()
    Image.new("RGB", (side, side), "red").save(buffer, "JPEG", subsampling=0)
    before = buffer.getvalue().partition(b"\xff\xda")[0]
    return before + _segment(0xDA, b"\1\1\0\0\x3f\0") * count + b"\xff\xd9"


def tiff_of_large_tiles(tile=4096, count=1000, width=16_000, height=16):
    """A grey TIFF, all of whose tiles are the same black one."""
    packed = zlib.compress(bytes(tile * tile), 9)
    tags = 10
    offsets = 8 + 2 + 12 * tags + 4
    sizes = offsets + 4 * count
    content = sizes + 4 * count
    entries = [(256, width), (257, height), (258, 8), (259, 8), (262, 1), (277, 1), (322, tile), (323, tile)]
    directory = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries)
    several = [(324, offsets, content), (325, sizes, len(packed))]
    # A single value stands in the directory.
    for tag, place, value in several:
        directory += struct.pack("<HHII", tag, 4, count, value if count == 1 else place)
    lists = struct.pack("<I", content) * count + struct.pack("<I", len(packed)) * count
    return b"II*\0" + struct.pack("<IH", 8, tags) + directory + bytes(4) + lists + packed


def run_length_bmp(width, height):
    """A black BMP with run lengths, every row of which ends after a pixel."""
    rows = b"\1\0\0\0" * height + b"\0\1"
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 1, len(rows), 0, 0, 256, 0)
    return b"BM" + struct.pack("<IHHI", 1078 + len(rows), 0, 0, 1078) + header + bytes(1024) + rows
