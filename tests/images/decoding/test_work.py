"""Small files that would take minutes to decode are refused before they are."""

import struct
import time
import zlib
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from deephash_pipeline.images.decoding.decode import BrokenImageError, decode_image
from deephash_pipeline.images.decoding.work import MOST_SCANS, count_scans
from tests.images.decoding.bombs import jpeg_of_scans, run_length_bmp, sequential_jpeg_of_scans, tiff_of_large_tiles

BOMBS = {
    "progressive JPEG": (jpeg_of_scans(4000, 8000), "8,001 scans"),
    "sequential JPEG": (sequential_jpeg_of_scans(3000, 8000), "8,000 scans"),
    "progressive JPEG, one scan too many": (jpeg_of_scans(64, MOST_SCANS), "101 scans"),
    "TIFF": (tiff_of_large_tiles(), "tiles"),
    "BMP": (run_length_bmp(40_000, 1000), "PNG"),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("opened", [BytesIO, lambda content: Image.open(BytesIO(content))], ids=["file", "image"])
def test_a_small_file_of_much_work_is_refused_at_once(name, opened):
    content, said = BOMBS[name]
    began = time.process_time()
    with pytest.raises(BrokenImageError, match=said):
        decode_image(opened(content), 28, 1)
    assert time.process_time() - began < 1


def test_as_many_scans_as_are_allowed_are_decoded():
    assert decode_image(BytesIO(jpeg_of_scans(64, MOST_SCANS - 1)), 8, 1).shape == (1, 8, 8)


@pytest.mark.parametrize("progressive", [False, True])
def test_usual_jpegs_have_few_scans_whatever_is_embedded_in_them(progressive):
    pixels = np.random.default_rng(0).integers(256, size=(200, 300, 3)).astype(np.uint8)
    buffer = BytesIO()
    Image.fromarray(pixels).save(
        buffer, "JPEG", quality=98, progressive=progressive, icc_profile=b"\xff\xda" * 200, comment=b"\xff\xda" * 200
    )
    # What follows the image is no part of it: a video, as phones write it.
    content = buffer.getvalue() + b"\xff\xda\0\2" * 200
    assert count_scans(content) == (10 if progressive else 1)
    assert decode_image(BytesIO(content), 20, 3).shape == (3, 20, 20)


def test_tiles_of_a_usual_size_are_decoded(tmp_path):
    for width, height in ((10, 10), (3000, 20)):
        content = tiff_of_large_tiles(tile=256, count=-(-width // 256), width=width, height=height)
        assert decode_image(BytesIO(content), 4, 1).max() == 0


def test_a_picture_with_run_lengths_is_decoded():
    assert decode_image(BytesIO(run_length_bmp(300, 200)), 4, 1).max() == 0


def test_packed_text_of_a_png_is_not_unpacked_without_end():
    text = zlib.compress(bytes(2**26), 9)
    chunk = b"zTXta\0\0" + text
    buffer = BytesIO()
    Image.new("L", (8, 8)).save(buffer, "PNG")
    content = buffer.getvalue()
    packed = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    began = time.process_time()
    with pytest.raises(BrokenImageError, match="too large"):
        decode_image(BytesIO(content[:33] + packed * 100 + content[33:]), 8, 1)
    assert time.process_time() - began < 1
