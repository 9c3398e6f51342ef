"""What `duplicates` would put on the list of what to remove: `python -m benchmarks.studies.removals PATHS`.

PATHS are folders of photographs, a folder for each class; a seed halves them. Thresholds were chosen on the half
`choose`; `report` is the other. Three questions:

- Of edits of originals, how many are on the list?
- Of two frames of one scene, made of a photograph by moving a thing, by parallax or by panning, how many are?
- Of all pairs of the half, and of those within a class, how many? Those that `duplicates` compares are compared at the
  level that takes most for copies; those on the list are named, to be looked at.

Small pictures are enlarged to 144 pixels first.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter, map_coordinates

from benchmarks.studies.copies import EDITS, HALVES, USUAL, drawn_from
from deephash_pipeline.common.progress import track
from deephash_pipeline.deephash import FeatureExtractor
from deephash_pipeline.photographs import list_images
from deephash_pipeline.photographs.duplicates.candidates import candidates
from deephash_pipeline.photographs.duplicates.finding import PATIENCE, Copies
from deephash_pipeline.photographs.duplicates.fingerprints import GREY, fingerprints
from deephash_pipeline.photographs.duplicates.frequencies import resized
from deephash_pipeline.photographs.duplicates.groups import Group, Photo, read_photo
from deephash_pipeline.photographs.duplicates.levels import Level
from deephash_pipeline.photographs.duplicates.proposals import proposed
from deephash_pipeline.photographs.duplicates.registration import Registration, register
from deephash_pipeline.photographs.duplicates.small_picture import LONGER_SIDE, Picture, scaled

LEAST_SIDE = 144
VISIBLE = 12.0
"""Greys, in the mean of what has moved, from which one can see it."""
ONE_PICTURE = frozenset(
    frozenset(pair)
    for pair in (
        ("water_lilly/image_0012", "water_lilly/image_0037"),
        ("gerenuk/image_0004", "gerenuk/image_0025"),
    )
)
"""Pairs that a data set has of one picture, by eye."""
Pixels = NDArray[np.float64]
Frames = Callable[[Pixels, np.random.Generator], tuple[Pixels, Pixels] | None]


def moved(pixels: Pixels, rng: np.random.Generator, size: float, step: float) -> tuple[Pixels, Pixels] | None:
    """A round thing at two places; None if it cannot be seen."""
    height, width = pixels.shape[:2]
    side = max(5, round(size * min(height, width)))
    away = np.abs(np.arange(side) - (side - 1) / 2) / (side / 2)
    cover = np.clip((1 - np.hypot.outer(away, away)) * side / 3, 0, 1)[..., np.newaxis]
    room = np.array([height - side, width - side])
    [here, of_thing] = (rng.integers(0, room) for _ in range(2))
    angle = rng.uniform(0, 2 * np.pi)
    there = np.clip(here + step * min(height, width) * np.array([np.sin(angle), np.cos(angle)]), 0, room).astype(int)
    thing = pixels[of_thing[0] : of_thing[0] + side, of_thing[1] : of_thing[1] + side]
    frames = []
    for y, x in (here, there):
        frame = pixels.copy()
        part = frame[y : y + side, x : x + side]
        part += cover * (thing - part)
        frames.append(frame)
    change = np.abs(frames[0] - frames[1]).mean(axis=2)
    return (frames[0], frames[1]) if np.sort(change.ravel())[-(side * side) // 2 :].mean() >= VISIBLE else None


def parallax(pixels: Pixels, rng: np.random.Generator, most: float) -> tuple[Pixels, Pixels]:
    """What is near goes farther than what is behind it, by steps or smoothly."""
    height, width = pixels.shape[:2]
    depth = gaussian_filter(rng.normal(size=(height, width)), min(height, width) / 6)
    depth = (depth - depth.min()) / np.ptp(depth)
    if rng.random() < 0.5:
        depth = gaussian_filter((depth > 0.5).astype(float), 1)
    y, x = np.mgrid[:height, :width]
    places = [y, x + most * min(height, width) * depth]
    moved = [map_coordinates(channel, places, order=1, mode="nearest") for channel in pixels.transpose(2, 0, 1)]
    return pixels, np.stack(moved, axis=-1)


def panned(pixels: Pixels, rng: np.random.Generator, most: float) -> tuple[Pixels, Pixels] | None:
    """The camera has turned by some pixels; None if what comes into view cannot be seen."""
    down, right = (int(rng.integers(0, round(most * side) + 1)) for side in pixels.shape[:2])
    right = max(right, 3)
    if pixels[:, :right].std(axis=(0, 1)).max() < VISIBLE or pixels[:, -right:].std(axis=(0, 1)).max() < VISIBLE:
        return None
    return pixels[: -down or None, :-right], pixels[down:, right:]


def panned_with_a_thing(pixels: Pixels, rng: np.random.Generator) -> tuple[Pixels, Pixels] | None:
    """Both at once; None if it cannot be seen."""
    frames = moved(pixels, rng, 0.12, 0.08)
    views = frames and [panned(frame, np.random.default_rng(len(pixels)), 0.05) for frame in frames]
    return (views[0][0], views[1][1]) if views and views[0] and views[1] else None


def shot(pixels: Pixels, rng: np.random.Generator, file: Path) -> None:
    """Save a frame with its own light, noise and compression."""
    noisy = pixels * (1 + rng.normal(0, 0.015)) + rng.normal(0, 1.5, pixels.shape)
    whole = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    Image.fromarray(whole).save(file, quality=int(rng.integers(80, 96)))


FRAMES: dict[str, Frames] = {
    "thing of 12 %": lambda pixels, rng: moved(pixels, rng, 0.12, 0.08),
    "thing of 7 %": lambda pixels, rng: moved(pixels, rng, 0.07, 0.07),
    "parallax 2 %": lambda pixels, rng: parallax(pixels, rng, 0.02),
    "parallax 5 %": lambda pixels, rng: parallax(pixels, rng, 0.05),
    "panned 3 %": lambda pixels, rng: panned(pixels, rng, 0.03),
    "panned 15 %": lambda pixels, rng: panned(pixels, rng, 0.15),
    "panned, and a thing": panned_with_a_thing,
}


def small(photo: Photo) -> Picture:
    """The picture by which `duplicates` registers a file."""
    with Image.open(photo.path) as image:
        grey = np.asarray(image.convert("RGB"), dtype=np.float32) @ GREY
    size = scaled((photo.width, photo.height), LONGER_SIDE / max(photo.width, photo.height))
    return Picture(np.rint(resized(grey, size)) / np.float32(255))


def on_list(one: Photo, other: Photo, least: float) -> str:
    """Name the decision for two files: the reason why one is on the list, or is not."""
    pictures = small(one), small(other)

    @cache
    def registered(row: int, best: int) -> Registration:
        return register(pictures[row], pictures[best])

    if registered(1, 0).agreement < least:
        return "no copies"
    return decision(proposed({one: 0, other: 1}, registered))


def decision(group: Group) -> str:
    """Name what is proposed for a group of two."""
    return "remove" if group.removable else group.members[1].reason


def originals(paths: Sequence[str], half: str, folder: Path) -> list[Path]:
    """Photographs of a half, those that are small enlarged in a folder."""
    listed = list_images(paths)[0]
    files = []
    for row in drawn_from(half, len(listed)):
        file = listed[row].path
        with Image.open(file) as image:
            if min(image.size) < LEAST_SIDE / 2:
                share = LEAST_SIDE / min(image.size)
                enlarged = image.convert("RGB").resize([round(share * side) for side in image.size], 3)
                file = folder / f"{listed[row].label}" / f"{row}-{file.stem}.png"
                file.parent.mkdir(exist_ok=True)
                enlarged.save(file, compress_level=1)
        files.append(file)
    return files


def pairs_of(
    file: Path, edits: Iterable[str], folder: Path, rng: np.random.Generator
) -> Iterator[tuple[str, Photo, Photo]]:
    """An original and some edits of it, and pairs of frames, by name."""
    with Image.open(file) as opened:
        picture = opened.convert("RGB")
    first, second = folder / "a.jpg", folder / "b.jpg"
    original = read_photo(str(file), file)
    for name in edits:
        EDITS[name](picture, rng).convert("RGB").save(first, quality=90)
        yield name, original, read_photo(str(first), first)
    for name, made in FRAMES.items():
        if frames := made(np.asarray(picture, dtype=np.float64), rng):
            for frame, target in zip(frames, (first, second), strict=True):
                shot(frame, rng, target)
            yield name, read_photo(str(first), first), read_photo(str(second), second)


def among_all(files: Sequence[Path]) -> Counter[str]:
    """Count pairs of all files, those that are compared by pixels, and by class those on the list, which are named."""
    extractor = FeatureExtractor.pretrained(device="cpu")
    photos = [read_photo(str(file), file) for file in files]
    prints = fingerprints(photos, lambda: extractor)
    copies = Copies(prints, len(photos), Level.LOOSE.agreement)
    everything = np.ones(len(prints.greys), np.bool_)
    near = candidates(prints, everything, everything)
    pairs = {(min(row, other), max(row, other)) for row, others in near for other in others[:PATIENCE]}
    of_classes = Counter(photo.path.parent for photo in photos).values()
    counted = Counter(
        pairs=len(photos) * (len(photos) - 1) // 2,
        within_classes=sum(size * (size - 1) // 2 for size in of_classes),
        candidates=len(pairs),
    )
    for pair in track(sorted(pairs), "pairs", len(pairs)):
        one, other = (int(prints.rows[place]) for place in pair)
        if copies.registered(one, other).agreement < copies.least:
            continue
        counted["compared by pixels"] += 1
        if decision(proposed({photos[one]: one, photos[other]: other}, copies.registered)) != "remove":
            continue
        paths = photos[one].path, photos[other].path
        known = frozenset(map(name_of, paths)) in ONE_PICTURE
        kind = "one picture" if known else "wrong"
        counted[f"{kind}, {'within a class' if paths[0].parent == paths[1].parent else 'of two classes'}"] += 1
        click.echo(f"on the list, {kind}: {paths[0]} {paths[1]}")
    return counted


def name_of(path: Path) -> str:
    """Class and name of a picture, enlarged or not."""
    return f"{path.parent.name}/{path.stem}"


@click.command()
@click.argument("paths", nargs=-1, required=True)
@click.option("--half", type=click.Choice(HALVES), default=HALVES[1], show_default=True)
@click.option("--drawn", default=300, show_default=True, help="Originals of edits and frames.")
@click.option("--usual", is_flag=True, help="Of edits the six usual ones alone.")
@click.option("--classes/--no-classes", default=True, help="Also look among all pairs of the half.")
def main(paths: tuple[str, ...], half: str, drawn: int, usual: bool, classes: bool) -> None:
    """Measure and print."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        files = originals(paths, half, folder)
        rng = np.random.default_rng(1)
        decisions: dict[str, Counter[str]] = defaultdict(Counter)
        for number, file in enumerate(files[:drawn], start=1):
            for kind, one, other in pairs_of(file, USUAL if usual else EDITS, folder, rng):
                decisions[kind][on_list(one, other, Level.DEFAULT.agreement)] += 1
            listed = ", ".join(f"{kind} {counted['remove']}" for kind, counted in decisions.items())
            click.echo(f"{number} of {drawn} originals; on the list: {listed}", err=True)
        for kind, counted in decisions.items():
            share = counted["remove"] / counted.total()
            others = ", ".join(f"{reason} {count}" for reason, count in counted.most_common() if reason != "remove")
            click.echo(f"{kind}: {counted['remove']} of {counted.total()} on the list, {share:.3f}; {others}")
        six = [decisions[kind] for kind in USUAL]
        click.echo(f"six usual edits: {np.mean([edit['remove'] / edit.total() for edit in six]) if drawn else 0:.3f}")
        if classes:
            for kind, count in among_all(files).items():
                click.echo(f"{kind}: {count:,}")
        click.echo(f"{time.process_time():.0f} s of a processor")


if __name__ == "__main__":
    main()
