"""What may take minutes to decode is decoded apart, within a limit; the pixels are those of any file."""

import struct
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from deephash_pipeline.images.batches import image_batches
from deephash_pipeline.images.decoding import limited
from deephash_pipeline.images.decoding.decode import BrokenImageError, decode_image
from deephash_pipeline.images.decoding.limited import USUAL_SCANS, decode_limited, may_take_long
from tests.images.decoding.bombs import SLOW, jpeg_of_scans

PIXELS = np.random.default_rng(0).integers(256, size=(64, 64, 3)).astype(np.uint8)


def saved(form, mode="RGB", **options):
    buffer = BytesIO()
    Image.fromarray(PIXELS).convert(mode).save(buffer, form, **options)
    return buffer.getvalue()


APART = {
    "JPEG 2000": lambda: saved("JPEG2000"),
    "AVIF": lambda: saved("AVIF"),
    "HEIC": lambda: saved("HEIF"),
    "JPEG within TIFF": lambda: saved("TIFF", compression="jpeg"),
    "JPEG of more scans than are usual": lambda: jpeg_of_scans(64, USUAL_SCANS),
    "PPM of fewer than 256 values": lambda: b"P5 3 2 254\n" + bytes(range(6)),
}
HERE = {
    "PNG": lambda: saved("PNG"),
    "JPEG": lambda: saved("JPEG"),
    "progressive JPEG": lambda: saved("JPEG", progressive=True),
    "WebP": lambda: saved("WEBP"),
    "GIF": lambda: saved("GIF"),
    "BMP": lambda: saved("BMP"),
    "TIFF": lambda: saved("TIFF", compression="tiff_lzw"),
    "PPM": lambda: saved("PPM"),
}


@pytest.fixture
def a_second(monkeypatch):
    monkeypatch.setattr(limited.DECODERS, "seconds", 1)


@pytest.mark.parametrize("name", APART)
@pytest.mark.parametrize("as_file", [False, True])
def test_what_no_header_bounds_is_decoded_apart_to_the_same_pixels(name, as_file, tmp_path):
    if name == "HEIC":
        pytest.importorskip("pillow_heif")
    content = APART[name]()
    (tmp_path / "picture").write_bytes(content)
    given = tmp_path / "picture" if as_file else content
    assert may_take_long(given)
    assert np.array_equal(decode_limited(given, (5, 6), 3), decode_image(BytesIO(content), (5, 6), 3))


@pytest.mark.parametrize("name", HERE)
def test_usual_files_are_decoded_where_they_are(name, tmp_path):
    content = HERE[name]()
    (tmp_path / "picture").write_bytes(content)
    assert not may_take_long(content)
    assert not may_take_long(tmp_path / "picture")


def test_a_file_that_takes_too_long_is_left_out_and_named(a_second, tmp_path):
    (tmp_path / "slow.pgm").write_bytes(SLOW)
    (tmp_path / "quick.png").write_bytes(saved("PNG"))
    [batch] = image_batches([tmp_path / "slow.pgm", tmp_path / "quick.png", SLOW], (1, 4, 4), errors="skip")
    reason = "not decoded within 1 seconds; save it anew"
    assert batch.rows.tolist() == [1]
    assert [(left.row, left.name, left.reason) for left in batch.skipped] == [
        (0, str(tmp_path / "slow.pgm"), reason),
        (2, "image 2", reason),
    ]


@pytest.mark.parametrize("form", ["AVIF", "HEIF"])
def test_the_size_in_the_header_is_checked_before_anything_is_decoded(form):
    if form == "HEIF":
        pytest.importorskip("pillow_heif")
    content = saved(form)
    place = content.index(b"ispe") + 8
    assert content[place : place + 8] == struct.pack(">II", 64, 64)
    large = content[:place] + struct.pack(">II", 20_000, 20_000) + content[place + 8 :]
    with pytest.raises(BrokenImageError, match=r"exceeds limit|cannot identify"):
        decode_limited(large, 4, 3)


def test_limits_of_pixels_that_a_user_sets_hold_apart_too(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(BrokenImageError, match="exceeds limit of 2000 pixels"):
        limited.DECODERS.decode(BytesIO(saved("JPEG2000")), 4, 3)
