"""Pictures look as a browser shows them on white, whatever the mode that they are stored in."""

import base64
import html
import io
import json
import struct
import zlib

import numpy as np
from PIL import Image, ImageCms

from deephash_pipeline.images.decoding.decode import decode_image
from tests.services import dumped, in_a_browser

RANDOM = np.random.default_rng(0)
SMOOTH = Image.fromarray(np.stack([np.tile(np.arange(0, 256, 4), (48, 1))] * 3, 2).astype(np.uint8))
SMOOTH = Image.merge("RGB", (*SMOOTH.split()[:2], SMOOTH.getchannel(0).transpose(Image.Transpose.ROTATE_180)))


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(depth, colour_type, row, *chunks):
    """Eight equal rows of 16 pixels."""
    bits = "".join(format(value, f"0{depth}b") for value in row)
    packed = bytes(int(bits[start : start + 8], 2) for start in range(0, len(bits), 8))
    header = struct.pack(">IIBBBBB", 16, 8, depth, colour_type, 0, 0, 0)
    parts = [(b"IHDR", header), *chunks, (b"IDAT", zlib.compress((b"\0" + packed) * 8)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def saved(image, form, **options):
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def profile(space, tags):
    """A colour profile of version 2."""
    table, content = b"", b""
    for name, value in tags.items():
        table += name + struct.pack(">II", 132 + 12 * len(tags) + len(content), len(value))
        content += value
    white = struct.pack(">3i", 63190, 65536, 54061)
    header = struct.pack(">I4xI4s4s4s", 132 + 12 * len(tags) + len(content), 0x02100000, b"mntr", space, b"XYZ ")
    header += bytes(12) + b"acsp" + bytes(28) + white + bytes(48)
    return header + struct.pack(">I", len(tags)) + table + content


def xyz(*value):
    return b"XYZ \0\0\0\0" + struct.pack(">3i", *(round(65536 * part) for part in value))


WHITE = {b"wtpt": xyz(0.9642, 1, 0.8249)}
LINEAR = b"curv\0\0\0\0\0\0\0\x01\x01\x00\0\0"
PRIMARIES = (xyz(0.4360, 0.2225, 0.0139), xyz(0.3851, 0.7169, 0.0971), xyz(0.1431, 0.0606, 0.7141))
GREEN_FOR_RED = dict(zip((b"gXYZ", b"rXYZ", b"bXYZ"), PRIMARIES, strict=True))
COLOUR = profile(b"RGB ", WHITE | GREEN_FOR_RED | dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), LINEAR))
GREY = profile(b"GRAY", WHITE | {b"kTRC": LINEAR})


def pictures():
    made = {}
    for depth in (1, 2, 4, 8):
        top = 2**depth - 1
        values = [round(place * top / 15) for place in range(16)]
        # A decoder takes of a key as many bits as pixels have.
        for key in {0, top, values[5], min(top, values[5] + 1), 256 + values[5]} - {256 if depth == 1 else -1}:
            made[f"grey of {depth} bits without {key}"] = png(depth, 0, values, (b"tRNS", struct.pack(">H", key)))
    row = [52, 0, 7, 52, 0, 8, 0, 0, 0, 0, 7, 7] * 4
    for key in (row[:3], row[6:9], [256 + row[0], *row[1:3]]):
        made[f"colour without {key}"] = png(8, 2, row, (b"tRNS", struct.pack(">3H", *key)))
    wide = [0x3401, 5, 0x80FF, 0x3402, 5, 0x80FF, 0, 0, 0, 0, 0, 1, 0x3401, 6, 0x80FF, 0x0134, 5, 0x80FF]
    for key in (wide[:3], wide[6:9], [0x3403, 5, 0x80FF], [0x34, 0, 0x80]):
        made[f"colour of 16 bits without {key}"] = png(16, 2, (3 * wide)[:48], (b"tRNS", struct.pack(">3H", *key)))
    for depth in (8, 16):
        for kind, bands in ((4, 2), (6, 4)):
            made[f"alpha of {depth} bits, {bands}"] = png(
                depth, kind, RANDOM.integers(2**depth, size=16 * bands).tolist()
            )
    for depth in (1, 2, 4, 8):
        colours = 2 ** min(depth, 4)
        palette = (b"PLTE", RANDOM.integers(256, size=3 * colours).astype(np.uint8).tobytes())
        row = [place % colours for place in range(16)]
        for alpha in (b"", b"\0", b"\xff\0", b"\x80\x30"):
            chunks = [(b"tRNS", alpha)] * bool(alpha)
            made[f"palette of {depth} bits, {alpha.hex()}"] = png(depth, 3, row, palette, *chunks)
    with_alpha = SMOOTH.copy()
    with_alpha.putalpha(SMOOTH.getchannel(0))
    for name, colours in (("colour", COLOUR), ("grey", GREY), ("damaged", COLOUR[:90])):
        for mode in ("RGB", "L", "RGBA", "P", "LA"):
            made[f"{name} profile of {mode}"] = saved(with_alpha.convert(mode), "PNG", icc_profile=colours)
        made[f"{name} profile of a JPEG"] = saved(SMOOTH, "JPEG", quality=97, subsampling=0, icc_profile=colours)
    ink = saved(with_alpha.convert("RGB").convert("CMYK"), "JPEG", quality=97)
    made |= {"CMYK": ink, "CMYK, not Adobe's": ink.replace(b"\xff\xee\0\x0eAdobe", b"\xff\xed\0\x0eAdobe")}
    made["CMYK of another profile"] = saved(SMOOTH.convert("CMYK"), "JPEG", quality=97, icc_profile=COLOUR)
    made["YCCK"] = ink[: (place := ink.index(b"Adobe") + 11)] + b"\x02" + ink[place + 1 :]
    made |= {"GIF": saved(with_alpha.quantize(32), "GIF")}
    made |= {"WebP": saved(with_alpha, "WEBP", lossless=True), "BMP": saved(with_alpha, "BMP")}
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        for form, options in (("PNG", {}), ("JPEG", {"quality": 97, "subsampling": 0}), ("AVIF", {"quality": 97})):
            made[f"{form} of orientation {orientation}"] = saved(SMOOTH, form, exif=exif, **options)
    return made


def shown_by_browser(files, folder):
    images = "".join(f'<img src="data:;base64,{base64.b64encode(content).decode()}">' for content in files.values())
    script = """<pre id="out"></pre><script>window.onload = () => {
      document.getElementById("out").textContent = JSON.stringify([...document.images].map((image) => {
        const canvas = document.createElement("canvas"), [width, height] = [image.naturalWidth, image.naturalHeight];
        [canvas.width, canvas.height] = [width, height];
        const context = canvas.getContext("2d");
        context.fillStyle = "white"; context.fillRect(0, 0, width, height); context.drawImage(image, 0, 0);
        const pixels = context.getImageData(0, 0, width, height).data;
        return [height, width, btoa(String.fromCharCode(...pixels))]; })); }</script>"""
    (folder / "page.html").write_text(images + script)
    page = dumped((folder / "page.html").as_uri(), folder / "profile", "--force-color-profile=srgb")
    out = json.loads(html.unescape(page.partition('id="out">')[2].partition("</pre>")[0]))
    shown = [np.frombuffer(base64.b64decode(data), np.uint8).reshape(h, w, 4)[:, :, :3] for h, w, data in out]
    return dict(zip(files, shown, strict=True))


@in_a_browser
def test_every_mode_looks_as_in_a_browser(tmp_path):
    files = pictures()
    wrong = {}
    for name, shown in shown_by_browser(files, tmp_path).items():
        decoded = decode_image(io.BytesIO(files[name]), None, 3).transpose(1, 2, 0)
        near = decoded.shape == shown.shape and np.abs(decoded.astype(int) - shown).max() <= 4
        if not near:
            wrong[name] = (decoded[0, 0].tolist(), shown[0, 0].tolist())
    assert not wrong


def test_a_transparent_value_shows_white():
    few = ((2, 0, [1]), (4, 0, [7]), (16, 2, [0x3401, 5, 0x80FF]))
    for depth, colour_type, key in ((8, 0, [7]), (8, 2, [7, 0, 9]), (16, 0, [7]), *few):
        content = png(depth, colour_type, key * 16, (b"tRNS", struct.pack(f">{len(key)}H", *key)))
        for given in (io.BytesIO(content), Image.open(io.BytesIO(content))):
            assert decode_image(given, None, 3)[0, 0, 0] == 255


def test_a_profile_and_an_orientation_hold_for_tiff_too():
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = io.BytesIO(saved(Image.new("RGB", (4, 6), "red"), "TIFF", exif=exif, icc_profile=COLOUR))
    decoded = decode_image(turned, None, 3)
    assert decoded.shape == (3, 4, 6)
    assert np.abs(decoded[:, 0, 0].astype(int) - [0, 255, 0]).max() <= 2


def test_grey_of_sixteen_bits_is_scaled_in_every_format():
    grey = Image.fromarray(np.full((4, 4), 40000, np.uint16))
    white_is_zero = saved(grey, "TIFF", tiffinfo={262: 0})
    for content, value in (*((saved(grey, form), 156) for form in ("PNG", "TIFF", "PPM")), (white_is_zero, 99)):
        assert decode_image(io.BytesIO(content), None, 1)[0, 0, 0] == value


def test_lab_is_brought_to_colours():
    profiles = [ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")]
    lab = ImageCms.profileToProfile(Image.new("RGB", (4, 4), (200, 30, 30)), *profiles, outputMode="LAB")
    for given in (lab, io.BytesIO(saved(lab, "TIFF"))):
        assert np.abs(decode_image(given, None, 3)[:, 0, 0].astype(int) - [200, 30, 30]).max() <= 3
