"""Copies that are found, by edit and share of false pairs: `python -m benchmarks.studies.copies PATHS`.

Beside our codes: pHash, the cosine of the features, dHash (imagehash) and PDQ (pdqhash).

Of 200 photographs every edit is compared with all photographs of PATHS. They are drawn from the half of PATHS on which
no threshold was chosen, the half that `benchmarks.studies.removals` reports. A pair whose originals are
nearer than .05 in cosine is neither right nor wrong; of codes also one whose originals, nearer than .25, lie on each
other as copies do at the usual level. Caltech-101 has copies that are neither. The pairs that count as false when
pictures are laid on each other are listed, to be looked at.
"""

import time
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageOps

from benchmarks.measuring import versions_of
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash import FeatureExtractor
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.photographs import list_images
from deephash_pipeline.photographs.duplicates import finding
from deephash_pipeline.photographs.duplicates.candidates import candidates
from deephash_pipeline.photographs.duplicates.fingerprints import Fingerprints, fingerprints
from deephash_pipeline.photographs.duplicates.frequencies import frequencies_in, low_frequencies, perceptual_hashes
from deephash_pipeline.photographs.duplicates.groups import read_photo
from deephash_pipeline.photographs.duplicates.levels import Level
from deephash_pipeline.photographs.duplicates.registration import register
from deephash_pipeline.photographs.duplicates.small_picture import Picture

PEERS = ("imagehash", "pdqhash")
"""Packages of other people's hashes."""
ORIGINALS = 200
HALVES = ("choose", "report")
SHARES = (0.0, 1e-5, 1e-4)
SAME, ALIKE = 0.05, 0.25
"""Cosine distances of originals that are one picture, and of those that are laid on each other to know it."""
USUAL = ("half size", "JPEG 30", "crop 10 %", "brightness 1.3", "rotation 5", "mirror")


def drawn_from(half: str, count: int) -> NDArray[np.int64]:
    """Rows of the half of `count` photographs that chooses, or reports, in a random order."""
    order = np.random.default_rng(0).permutation(count)
    return order[: count // 2] if half == HALVES[0] else order[count // 2 :]


def crop(picture: Image.Image, left: float, rng: np.random.Generator) -> Image.Image:
    """Cut out a part of the width and of the height, anywhere."""
    width, height = round(picture.width * left), round(picture.height * left)
    x, y = (int(rng.integers(0, room + 1)) for room in (picture.width - width, picture.height - height))
    return picture.crop((x, y, x + width, y + height))


def compressed(picture: Image.Image, quality: int) -> Image.Image:
    """What JPEG leaves of it."""
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=quality)
    return Image.open(buffer)


def overlaid(picture: Image.Image) -> Image.Image:
    """With a line of text on black and a red dot, a fifth of its area."""
    picture, (width, height) = picture.copy(), picture.size
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 0.8 * height, width, 0.96 * height), fill="black")
    draw.text((0.05 * width, 0.8 * height), "holiday, 2019", fill="white", font_size=round(0.12 * height))
    draw.ellipse((0.75 * width, 0.05 * height, 0.92 * width, 0.05 * height + 0.17 * width), fill=(220, 30, 40))
    return picture


def on_screen(picture: Image.Image) -> Image.Image:
    """As a program shows it, with a title and a margin."""
    width, height = picture.size
    screen = Image.new("RGB", (round(1.3 * width), round(1.45 * height)), (245, 245, 247))
    draw = ImageDraw.Draw(screen)
    draw.rectangle((0, 0, screen.width, 0.1 * height), fill=(40, 44, 52))
    draw.text((0.1 * width, 0.01 * height), "Photos", fill="white", font_size=round(0.07 * height))
    draw.rectangle((0, screen.height - 0.08 * height, *screen.size), fill=(220, 220, 224))
    screen.paste(picture, (round(0.15 * width), round(0.2 * height)))
    return screen


BICUBIC = Image.Resampling.BICUBIC
EDITS: dict[str, Callable[[Image.Image, np.random.Generator], Image.Image]] = {
    "half size": lambda p, _: p.resize((p.width // 2, p.height // 2), Image.Resampling.LANCZOS),
    "JPEG 30": lambda p, _: compressed(p, 30),
    "crop 10 %": lambda p, rng: crop(p, 0.9, rng),
    "brightness 1.3": lambda p, _: ImageEnhance.Brightness(p).enhance(1.3),
    "rotation 5": lambda p, _: p.rotate(5, BICUBIC),
    "mirror": lambda p, _: ImageOps.mirror(p),
    "crop 30 %": lambda p, rng: crop(p, 0.7, rng),
    "rotation 90": lambda p, _: p.transpose(Image.Transpose.ROTATE_90),
    "any rotation": lambda p, rng: p.rotate(int(rng.integers(10, 351)), BICUBIC, expand=True, fillcolor="white"),
    "overlay": lambda p, _: overlaid(p),
    "border 8 %": lambda p, _: ImageOps.expand(p, round(0.08 * max(p.size)), "white"),
    "blur 1.5": lambda p, _: p.filter(ImageFilter.GaussianBlur(1.5)),
    "grey": lambda p, _: p.convert("L"),
    "screenshot": lambda p, _: on_screen(p),
    "JPEG 10; quarter": lambda p, _: compressed(p.resize((p.width // 4, p.height // 4), Image.Resampling.LANCZOS), 10),
}


def hamming(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Bits that differ, (rows of one, rows of other)."""
    signs = [2 * np.unpackbits(codes, axis=1).astype(np.float32) - 1 for codes in (one, other)]
    distances: NDArray[np.float32] = (signs[0].shape[1] - signs[0] @ signs[1].T) / 2
    return distances


def peers(files: Iterable[Path | str]) -> dict[str, NDArray[np.uint8]]:
    """Codes of other people's hashes, (files, ways to turn a picture, bytes); the first is of the picture as it is."""
    import imagehash  # noqa: PLC0415 - the study alone needs them
    import pdqhash  # noqa: PLC0415

    codes: dict[str, list[NDArray[np.uint8]]] = {"dHash 64": [], "PDQ 256": []}
    taken = dict.fromkeys(codes, 0.0)
    for file in files:
        with Image.open(file) as opened:
            picture = opened.convert("RGB")
        began = time.process_time()
        turned = (picture, ImageOps.mirror(picture))
        codes["dHash 64"].append(np.stack([np.packbits(imagehash.dhash(one).hash) for one in turned]))
        between = time.process_time()
        codes["PDQ 256"].append(np.packbits(pdqhash.compute_dihedral(np.asarray(picture))[0], axis=1))
        taken["dHash 64"] += between - began
        taken["PDQ 256"] += time.process_time() - between
    for name, seconds in taken.items():
        click.echo(f"{name}: {1000 * seconds / len(codes[name]):.2f} ms a picture, decoding apart", err=True)
    return {name: np.stack(rows) for name, rows in codes.items()}


def coder(z: NDArray[np.float32]) -> Callable[[NDArray[np.float32]], NDArray[np.uint8]]:
    """A function from features to 256 bits: they are whitened and rotated."""
    variances, directions = np.linalg.eigh(np.cov(z, rowvar=False))
    whitening = directions / np.sqrt(np.maximum(variances, np.finfo(np.float32).eps * variances[-1]))
    rotation = HASH_FUNCTIONS["rotation"](256).fit(z @ whitening)
    return lambda features: np.packbits(rotation.transform(features @ whitening), axis=1)


def distances(
    edits: Fingerprints,
    originals: Fingerprints,
    code: Callable[[NDArray[np.float32]], NDArray[np.uint8]],
) -> dict[str, NDArray[np.float32]]:
    """Of each edit to each original, by several methods."""
    raw = [prints.features.astype(np.float32) for prints in (edits, originals)]
    codes = [code(z) for z in raw]
    low = low_frequencies(edits.greys)
    of_edits = [perceptual_hashes(frequencies_in(low, turned)) for turned in (0, 1)]
    of_originals = perceptual_hashes(low_frequencies(originals.greys))
    pixels = np.minimum(*(hamming(hashes, of_originals) for hashes in of_edits))
    by_256, by_128 = (hamming(codes[0][:, :size], codes[1][:, :size]) for size in (32, 16))
    joined = Fingerprints(
        np.arange(len(edits.greys) + len(originals.greys)),
        np.concatenate([edits.features, originals.features]),
        [*edits.greys, *originals.greys],
        [],
    )
    asked = np.arange(len(joined.greys)) < len(edits.greys)
    laid = np.ones(pixels.shape, dtype=np.float32)
    for edit, near in candidates(joined, asked, ~asked):
        for original in near[: finding.PATIENCE]:
            pictures = (Picture(joined.greys[row].astype(np.float32) / 255) for row in (edit, original))
            laid[edit, original - len(edits.greys)] = 1 - register(*pictures).agreement
    return {
        "pHash 64": pixels,
        "cosine": 1 - raw[0] @ raw[1].T,
        "192 bits": pixels / 64 + 2 * by_128 / 128,
        "320 bits": pixels / 64 + 2 * by_256 / 256,
        "registered": laid,
    }


@click.command()
@click.argument("paths", nargs=-1, required=True)
@click.option("--originals", default=ORIGINALS, show_default=True)
@click.option("--half", type=click.Choice(HALVES), default=HALVES[1], show_default=True)
def main(paths: tuple[str, ...], originals: int, half: str) -> None:
    """Measure and print."""
    try:
        versions_of(PEERS)
    except InputError as error:
        raise click.ClickException(str(error)) from error
    extractor = FeatureExtractor.pretrained(device="cpu")
    photos, _ = finding._photos(list_images(paths)[0], (), {})
    database = fingerprints(photos, lambda: extractor)
    originals_by = peers(photo.path for photo in photos)
    drawn = drawn_from(half, len(photos))[:originals]
    z = database.features.astype(np.float32)
    code = coder(z)
    apart = 1 - z[drawn] @ z.T
    same = apart < SAME
    copies, laid = same.copy(), finding.Copies(database, len(photos), Level.DEFAULT.agreement)
    for row, other in np.argwhere(apart < ALIKE).tolist():
        copies[row, other] |= laid.registered(int(drawn[row]), other).agreement >= laid.least
    counts = ", ".join(str(int(mask.sum()) - len(drawn)) for mask in (same, copies))
    click.echo(f"pairs of originals that are neither right nor wrong, by cosine, and also laid on each other: {counts}")
    found: dict[str, dict[str, NDArray[np.float32]]] = {}
    with TemporaryDirectory() as folder:
        for edit, change in EDITS.items():
            rng, files = np.random.default_rng(1), []
            for row in drawn:
                files.append(Path(folder, f"{row}.jpg"))
                with Image.open(photos[row].path) as picture:
                    change(picture.convert("RGB"), rng).save(files[-1], quality=90)
            edited = [read_photo(str(file), file) for file in files]
            prints = fingerprints(edited, lambda: extractor)
            found[edit] = distances(prints, database, code)
            for peer, codes in peers(files).items():
                turned = [hamming(codes[:, way], originals_by[peer][:, 0]) for way in range(codes.shape[1])]
                found[edit][peer] = np.minimum.reduce(turned)
            click.echo(f"{edit} measured", err=True)
    right = (np.arange(len(drawn)), drawn)
    for method in found["mirror"]:
        others = ~(same if method == "registered" else copies)
        false = np.sort(np.concatenate([found[edit][method][others] for edit in USUAL]))
        click.echo(f"{method}: recall where none, .001 %, .01 % of {len(false):,} other pairs are taken for copies")
        rows = {
            edit: [float((found[edit][method][right] < false[int(s * len(false))]).mean()) for s in SHARES]
            for edit in EDITS
        }
        rows = {"the six": list(np.mean([rows[edit] for edit in USUAL], axis=0)), **rows}
        for edit, recalls in rows.items():
            click.echo(f"  {edit:16}" + "".join(f"{recall:8.3f}" for recall in recalls))
    for level in Level:
        taken = {edit: found[edit]["registered"] <= 1 - level.agreement for edit in EDITS}
        wrong = sum(int((taken[edit] & ~same).sum()) for edit in USUAL)
        share = wrong / sum(int((~same).sum()) for _ in USUAL)
        recalls = ", ".join(f"{edit} {taken[edit][right].mean():.3f}" for edit in EDITS)
        click.echo(f"{level} ({level.agreement}): {wrong} other pairs, {100 * share:.5f} %; recall: {recalls}")
    pairs = {
        (int(drawn[r]), int(c))
        for edit in USUAL
        for r, c in np.argwhere((found[edit]["registered"] <= 1 - Level.DEFAULT.agreement) & ~same)
    }
    for original, other in sorted(pairs):
        click.echo(f"other pair: {photos[original].name} {photos[other].name}")


if __name__ == "__main__":
    main()
