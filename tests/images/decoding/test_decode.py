import errno
import subprocess
import sys
import textwrap
import warnings
from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.decode import BrokenImageError, decode_image
from deephash_pipeline.images.decoding.formats import FORMATS, is_image

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def noise(height, width, channels=3, seed=0):
    return np.random.default_rng(seed).integers(256, size=(height, width, channels)).astype(np.uint8)


def test_pixels_of_the_right_size_are_not_touched(tmp_path):
    pixels = noise(8, 8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    np.testing.assert_array_equal(decode_image(tmp_path / "a.png", 8, 3), pixels.transpose(2, 0, 1))


def test_height_and_width_may_differ_or_stay_as_they_are(tmp_path):
    image = Image.fromarray(noise(10, 14))
    image.save(tmp_path / "a.png")
    expected = np.asarray(image.resize((5, 8), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    np.testing.assert_array_equal(decode_image(tmp_path / "a.png", (8, 5), 3), expected)
    np.testing.assert_array_equal(decode_image(tmp_path / "a.png", None, 3), np.asarray(image).transpose(2, 0, 1))


def test_grey_becomes_colour_and_colour_grey_as_asked(tmp_path):
    Image.new("RGB", (6, 4), RED).save(tmp_path / "red.png")
    Image.new("L", (6, 4), 100).save(tmp_path / "grey.png")
    assert decode_image(tmp_path / "red.png", 2, 3)[:, 0, 0].tolist() == [255, 0, 0]
    assert decode_image(tmp_path / "red.png", 2, 1)[:, 0, 0].tolist() == [76]
    assert decode_image(tmp_path / "grey.png", 2, 3)[:, 0, 0].tolist() == [100, 100, 100]


@pytest.mark.parametrize(
    ("mode", "name"),
    [("CMYK", "a.jpg"), ("P", "a.png"), ("1", "a.png"), ("RGB", "a.webp"), ("P", "a.gif"), ("YCbCr", "a.tif")],
)
def test_odd_modes_keep_their_colour(tmp_path, mode, name):
    colour = (255, 255, 255) if mode == "1" else RED
    Image.new("RGB", (8, 8), colour).convert(mode).save(tmp_path / name)
    with Image.open(tmp_path / name) as written:
        assert written.mode == mode
    decoded = decode_image(tmp_path / name, 4, 3).astype(int)
    assert np.abs(decoded - np.array(colour).reshape(3, 1, 1)).max() <= 3


@pytest.mark.parametrize(("mode", "kind", "sign"), [("I", 2, ""), ("F", 3, ""), ("I;16", 2, "signed ")])
def test_numbers_of_32_bits_or_with_a_sign_have_no_black_and_white_and_are_broken(tmp_path, mode, kind, sign):
    Image.new(mode, (4, 4), 40000).save(tmp_path / "a.tif", tiffinfo={339: kind})
    with pytest.raises(BrokenImageError, match=rf"^{sign}numbers of \d\d bits \(mode {mode[0]}\); convert it to 8"):
        decode_image(tmp_path / "a.tif", 4, 1)


@pytest.mark.parametrize("form", ["EPS", "PDF", "ICO", "TGA"])
def test_no_other_format_is_opened_whatever_its_name(tmp_path, form, monkeypatch):
    ghostscript = Mock(side_effect=AssertionError("another program was started"))
    monkeypatch.setattr(subprocess, "Popen", ghostscript)
    Image.new("RGB", (16, 16), RED).save(tmp_path / "a.png", format=form)
    with pytest.raises(BrokenImageError, match=r"cannot identify image file '.*a\.png' as PNG, JPEG, .* or HEIC"):
        decode_image(tmp_path / "a.png", 4, 3)
    ghostscript.assert_not_called()


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM", "AVIF", "JPEG2000"])
def test_a_format_is_known_by_its_content(tmp_path, form):
    Image.new("RGB", (64, 64), RED).save(tmp_path / "a", format=form)
    assert is_image(tmp_path / "a")
    assert np.abs(decode_image(tmp_path / "a", 4, 3).mean(axis=(1, 2)) - (255, 0, 0)).max() < 4


def test_heic_without_its_reader_is_broken_and_the_remedy_is_named(tmp_path):
    if "HEIF" in FORMATS:
        pytest.skip("pillow-heif is installed")
    (tmp_path / "a.HEIC").write_bytes(bytes(4) + b"ftypheic" + bytes(64))
    assert is_image(tmp_path / "a.HEIC")
    with pytest.raises(BrokenImageError, match="pip install pillow-heif"):
        decode_image(tmp_path / "a.HEIC", 4, 3)


@pytest.mark.complete
def test_heic_is_turned_as_its_container_says_and_not_once_more_by_exif(tmp_path):
    pytest.importorskip("pillow_heif")
    pixels = np.zeros((64, 64), dtype=np.uint8)
    pixels[:16] = 255
    image = Image.fromarray(pixels).convert("RGB")
    tag = image.getexif()
    tag[0x0112] = 6
    image.save(tmp_path / "a.heic", format="HEIF", quality=95, exif=tag)
    assert is_image(tmp_path / "a.heic")
    assert np.abs(decode_image(tmp_path / "a.heic", 64, 1)[0].astype(int) - pixels).mean() < 4


@pytest.mark.parametrize("fault", [OSError(errno.EMFILE, "Too many open files"), MemoryError()])
def test_a_fault_of_the_machine_does_not_make_an_image_broken(tmp_path, fault, monkeypatch):
    (tmp_path / "a.png").touch()
    monkeypatch.setattr(Image, "open", Mock(side_effect=fault))
    with pytest.raises(InputError, match=r"a\.png cannot be read at present \(.+\): mend that and run again"):
        decode_image(tmp_path / "a.png", 4, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_memory_that_runs_out_does_not_make_an_image_broken(tmp_path):
    suffixes = ["png", "jpg", "webp", "bmp"]
    for suffix in suffixes:
        Image.new("RGB", (4000, 4000), RED).save(tmp_path / f"a.{suffix}")
    child = f"""
        import resource
        from pathlib import Path
        from deephash_pipeline.common.errors import InputError
        from deephash_pipeline.images.decoding.decode import decode_image

        paths = [Path({str(tmp_path)!r}, f"a.{{suffix}}") for suffix in {suffixes}]
        assert {{decode_image(path, None, 3).shape for path in paths}} == {{(3, 4000, 4000)}}
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, 2 * (used + 2**24,))
        for path in paths:
            try:
                decode_image(path, None, 3)
            except InputError as error:
                print(error)
        """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(child)], check=True, capture_output=True, text=True)
    reasons = ["out of memory", "out of memory", "could not create decoder object", "out of memory"]
    for suffix, reason, line in zip(suffixes, reasons, ended.stdout.splitlines(), strict=True):
        assert line.startswith(f"{tmp_path}/a.{suffix} cannot be read at present ({reason}): mend that and run again")


@pytest.mark.parametrize("name", ["a.png", "a.webp"])
def test_of_an_animation_the_first_frame_is_taken(tmp_path, name):
    first, second = (Image.new("RGB", (8, 8), colour) for colour in (RED, BLUE))
    first.save(tmp_path / name, save_all=True, append_images=[second], duration=100, lossless=True)
    with Image.open(tmp_path / name) as written:
        assert written.n_frames == 2
    assert decode_image(tmp_path / name, 4, 3)[:, 0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize(("orientation", "turns"), [(1, 0), (3, 2), (6, 1), (8, 3)])
def test_a_photograph_is_turned_upright(tmp_path, orientation, turns):
    upright = np.zeros((4, 4), dtype=np.uint8)
    upright[0] = 255
    turned = Image.fromarray(np.rot90(upright, turns))
    tag = turned.getexif()
    tag[0x0112] = orientation
    turned.save(tmp_path / "a.png", exif=tag)
    np.testing.assert_array_equal(decode_image(tmp_path / "a.png", 4, 1)[0], upright)


def test_a_large_photograph_looks_the_same_though_it_is_shrunk_while_it_is_decoded(tmp_path):
    smooth = Image.fromarray(noise(6, 6)).resize((960, 720), Image.Resampling.BICUBIC)
    smooth.save(tmp_path / "a.jpg", quality=95)
    with Image.open(tmp_path / "a.jpg") as whole:
        expected = np.asarray(whole.resize((32, 32), Image.Resampling.BILINEAR)).astype(int)
    assert np.abs(decode_image(tmp_path / "a.jpg", 32, 3).transpose(1, 2, 0) - expected).max() <= 4


@pytest.mark.parametrize("name", ["a.png", "a.jpg"])
def test_an_image_40_000_pixels_wide_is_resized_as_any_other(tmp_path, name):
    wide = Image.new("RGB", (40_000, 500), RED)
    wide.paste(BLUE, (20_000, 0, 40_000, 500))
    wide.save(tmp_path / name)
    decoded = decode_image(tmp_path / name, 8, 3).astype(int)
    assert np.abs(decoded[:, 4, 0] - RED).max() <= 3
    assert np.abs(decoded[:, 4, 7] - BLUE).max() <= 3


def test_a_decompression_bomb_is_broken_and_its_reason_is_given_and_half_of_one_is_read_in_silence(tmp_path):
    Image.new("1", (40_000, 5_000)).save(tmp_path / "bomb.png")
    with pytest.raises(BrokenImageError, match="decompression bomb"):
        decode_image(tmp_path / "bomb.png", 8, 1)
    Image.new("1", (10_000, 9_000)).save(tmp_path / "half.png")
    child = f"from {decode_image.__module__} import *; decode_image('{tmp_path}/half.png', 8, 1)"
    assert subprocess.run([sys.executable, "-c", child], check=True, capture_output=True).stderr == b""


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "bmp"])
@pytest.mark.parametrize(
    "break_it",
    [lambda content: content[: len(content) // 2], lambda content: content[:20], lambda _: b"", lambda _: b"no image"],
    ids=["half", "20 bytes", "0 bytes", "text"],
)
def test_a_broken_image_has_a_reason_in_one_line(tmp_path, suffix, break_it):
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(noise(64, 64)).save(path)
    path.write_bytes(break_it(path.read_bytes()))
    with pytest.raises(BrokenImageError, match=r"^[^\n]+$"):
        decode_image(path, 8, 3)


@pytest.mark.parametrize("suffix", ["png", "webp", "jpg"])
def test_damage_of_exif_alone_breaks_no_image(suffix, tmp_path):
    plain, damaged = tmp_path / f"plain.{suffix}", tmp_path / f"damaged.{suffix}"
    image = Image.fromarray(noise(16, 16))
    turned = b"\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"
    # Beside it a resolution that is text, which is read and not to be written again.
    odd = b"Exif\0\0II*\0\x08\0\0\0\x02\0" + turned + b"\x1a\x01\x02\0\x04\0\0\0abc\0\0\0\0\0"
    right = b"Exif\0\0II*\0\x08\0\0\0\x01\0" + turned + b"\0\0\0\0"
    for exif, of_plain in ((b"garbage!", b""), (odd, right)):
        image.save(plain, exif=of_plain)
        image.save(damaged, exif=exif)
        for given in (damaged, Image.open(damaged)):
            np.testing.assert_array_equal(decode_image(given, 8, 3), decode_image(plain, 8, 3))


def test_whatever_is_wrong_within_a_file_it_is_decoded_or_broken(tmp_path):
    generator = np.random.default_rng(0)
    for suffix in ("png", "jpg", "webp"):
        path = tmp_path / f"a.{suffix}"
        Image.fromarray(noise(16, 16)).save(path, exif=b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0")
        whole = path.read_bytes()
        for _ in range(100):
            damaged = np.frombuffer(whole, dtype=np.uint8).copy()
            damaged[generator.integers(len(damaged), size=5)] = generator.integers(256, size=5)
            path.write_bytes(damaged.tobytes())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    assert decode_image(path, 8, 3).shape == (3, 8, 8)
                except BrokenImageError as error:
                    assert "\n" not in str(error)
