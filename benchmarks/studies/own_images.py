"""DeepHash as it comes, on ten data sets that chose no default of it: `python -m benchmarks.studies.own_images FOLDER`.

FOLDER has the images of CIFAR-10, FER2013, Caltech-101 and SUN, a folder for each class, below `cifar10`, `fer2013`,
`caltech101` and `sun`; shapes, characters and scenes of two photographs are made here. Beside DeepHash: a plain
network's signs, with the same mirror images and turns; ITQ on the features of DeepHash's own first stage; and ITQ and
SDH on EfficientNet-Lite0, where no network is trained. mAP of images that took no part, 48 bits.

    python -m benchmarks.studies.own_images FOLDER --project CLONE

runs the environment `images` on the same sets instead, in a clone of the project whose data may be written over.
"""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
import matplotlib
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from sklearn.datasets import load_sample_images
from torch import Tensor, nn
from torch.nn import functional

from deephash_pipeline import DeepHash, FeatureHash
from deephash_pipeline.deephash import PreTrainingParameters
from deephash_pipeline.deephash.candidates import held_out_map
from deephash_pipeline.deephash.features import PHOTOGRAPHS
from deephash_pipeline.deephash.training_set import LabelledImages
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.images.augmentation import AugmentationParameters, augment
from deephash_pipeline.retrieval import chance_level, count_distances, mean_average_precision, pack_bits

BITS = 48
Pixels = NDArray[np.uint8]


class DataSet(NamedTuple):
    """Images (n, height, width, 3) or (n, height, width) and their classes, and those that are searched with."""

    images: Pixels
    classes: NDArray[np.int64]
    queries: Pixels
    query_classes: NDArray[np.int64]


def split(images: Pixels, classes: NDArray[np.int64]) -> DataSet:
    """Draw a fifth of each class as queries, at most 40."""
    random, query = np.random.default_rng(1), np.zeros(len(images), bool)
    for number in np.unique(classes):
        rows = random.permutation(np.flatnonzero(classes == number))
        query[rows[: min(40, max(1, len(rows) // 5))]] = True
    return DataSet(images[~query], classes[~query], images[query], classes[query])


def shapes() -> DataSet:
    """Six shapes, turned by any angle, in two random colours with noise, 48 x 40 pixels."""
    random, corners = np.random.default_rng(3), [3, 4, 5, 6, 8, 40]
    images = []
    for number in range(600):
        count = corners[number % 6]
        picture = Image.new("RGB", (160, 192), tuple(random.integers(0, 256, 3).tolist()))
        turn, size = random.uniform(0, 2 * np.pi), random.uniform(40, 65)
        angles = turn + np.arange(2 * count) * np.pi / count
        radii = size * np.where(np.arange(2 * count) % 2, 0.45 if count in (5, 8) else np.cos(np.pi / count), 1)
        centre = np.array([80, 96]) + random.uniform(-16, 16, 2)
        points = centre + np.stack([radii * np.cos(angles), radii * np.sin(angles)], 1) * [1, 0.5 if count == 40 else 1]
        colour = tuple(random.integers(0, 256, 3).tolist())
        ImageDraw.Draw(picture).polygon([tuple(point) for point in points.tolist()], fill=colour)
        noisy = np.asarray(picture.resize((40, 48)), float) + random.normal(0, 20, (48, 40, 3))
        images.append(noisy.clip(0, 255).astype(np.uint8))
    return split(np.stack(images), np.arange(600) % 6)


def characters() -> DataSet:
    """Capitals and digits in the fonts that come with Matplotlib, 32 x 32 pixels, grey."""
    fonts = sorted((Path(matplotlib.get_data_path()) / "fonts" / "ttf").glob("*.ttf"))
    fonts = [font for font in fonts if font.name.startswith(("DejaVu", "STIXGeneral"))]
    random, letters = np.random.default_rng(4), "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    images, classes = [], []
    for number, letter in enumerate(letters):
        for font in fonts:
            for _ in range(2):
                picture = Image.new("L", (32, 32), 255)
                style = ImageFont.truetype(str(font), int(random.integers(16, 26)))
                place = tuple((16 + random.uniform(-3, 3, 2)).tolist())
                ImageDraw.Draw(picture).text(place, letter, fill=int(random.integers(0, 120)), font=style, anchor="mm")
                images.append(np.asarray(picture))
                classes.append(number)
    return split(np.stack(images), np.array(classes))


def scenes() -> DataSet:
    """Patches of two photographs that come with scikit-learn, 16 x 16 pixels."""
    random = np.random.default_rng(5)
    images = []
    for photograph in load_sample_images().images:
        for _ in range(300):
            y, x = (int(random.integers(0, side - 48)) for side in photograph.shape[:2])
            images.append(np.asarray(Image.fromarray(photograph[y : y + 48, x : x + 48]).resize((16, 16))))
    return split(np.stack(images), np.arange(600) // 300)


def of_folder(folder: Path, size: int, classes: slice, counts: tuple[int, int], mode: str = "RGB") -> DataSet:
    """Some classes of a folder, with the first number of images down to the second."""
    folders = sorted({path.parent for path in folder.rglob("*.*")})[classes]
    of_class = np.geomspace(*counts, len(folders)).round().astype(int).tolist()
    images, numbers = [], []
    for number, (below, count) in enumerate(zip(folders, of_class, strict=True)):
        paths = sorted(below.glob("*.*"))
        for row in np.random.default_rng(6).permutation(len(paths))[:count].tolist():
            with Image.open(paths[row]) as picture:
                images.append(np.asarray(picture.convert(mode).resize((size, size), Image.Resampling.BICUBIC)))
            numbers.append(number)
    return split(np.stack(images), np.array(numbers))


def data_sets(root: Path) -> dict[str, Callable[[], DataSet]]:
    """All ten, by what they are."""
    return {
        "shapes, 6 classes of 100, 48 x 40": shapes,
        "characters of fonts, 36 of 42, 32 x 32 grey": characters,
        "patches of two photographs, 2 of 300, 16 x 16": scenes,
        "CIFAR-10, 10 of 120, 32 x 32": lambda: of_folder(root / "cifar10", 32, slice(None), (120, 120)),
        "CIFAR-10, cats and dogs, 2 of 800": lambda: of_folder(root / "cifar10", 32, slice(3, 6, 2), (800, 800)),
        "CIFAR-10, 5 of 400 down to 10": lambda: of_folder(root / "cifar10", 32, slice(5), (400, 10)),
        "FER2013, 7 of 200, 48 x 48 grey": lambda: of_folder(root / "fer2013", 48, slice(None), (200, 200), "L"),
        "Caltech-101, 50 of 31, 64 x 64": lambda: of_folder(root / "caltech101", 64, slice(50), (31, 31)),
        "Caltech-101, 10 of 31, 144 x 144": lambda: of_folder(root / "caltech101", 144, slice(50, 60), (31, 31)),
        "SUN, 20 of 40, 96 x 96": lambda: of_folder(root / "sun", 96, slice(20), (40, 40)),
    }


def plain_network(data: DataSet, pretraining: PreTrainingParameters | None) -> float:
    """MAP of the signs of 48 units below the classes: four convolutions, Adam with one cycle, 40 epochs."""
    torch.manual_seed(0)
    images = torch.from_numpy(data.images).permute(0, 3, 1, 2).float()
    queries = torch.from_numpy(data.queries).permute(0, 3, 1, 2).float()
    if max(images.shape[2:]) > 96:
        images, queries = (functional.interpolate(batch, size=(96, 96), mode="area") for batch in (images, queries))
    labels = torch.from_numpy(data.classes)

    def block(channels: int, filters: int) -> list[nn.Module]:
        return [nn.Conv2d(channels, filters, 3, padding=1), nn.BatchNorm2d(filters), nn.ReLU(), nn.MaxPool2d(2)]

    layers = [*block(3, 32), *block(32, 64), *block(64, 128), *block(128, 128)]
    trunk = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, BITS), nn.BatchNorm1d(BITS))
    head = nn.Linear(BITS, int(labels.max()) + 1)
    network, epochs, size = nn.Sequential(trunk, nn.Tanh(), head), 40, 32
    optimizer = torch.optim.Adam(network.parameters())
    steps = epochs * (len(images) // size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps + 1)
    moves = pretraining.augmentation if pretraining else AugmentationParameters()
    for epoch in range(epochs):
        order = torch.randperm(len(images))
        for step in range(len(images) // size):
            rows = order[step * size : (step + 1) * size]
            batch = augment(images[rows], moves, seed=epoch * 100_000 + step)
            loss = functional.cross_entropy(network(batch / 64 - 2), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    trunk.eval()

    @torch.no_grad()
    def bits(batch: Tensor) -> NDArray[np.bool_]:
        return np.concatenate([(trunk(part / 64 - 2) >= 0).numpy() for part in batch.split(256)])

    return map_of(bits(queries), bits(images), data)


def map_of(query_bits: NDArray[np.bool_], bits: NDArray[np.bool_], data: DataSet) -> float:
    """MAP of the queries' bits in those of the images."""
    codes = pack_bits(query_bits), pack_bits(bits)
    return mean_average_precision(count_distances(codes[0], data.query_classes, codes[1], data.classes, BITS))


def measure(data: DataSet) -> dict[str, float | str]:
    """All figures of a data set."""
    row: dict[str, float | str] = {"chance": chance_level(data.query_classes, data.classes)}

    def timed(name: str, compute: Callable[[], float]) -> None:
        began = time.process_time()
        row[name] = compute()
        row[f"{name}, CPU s"] = time.process_time() - began

    hasher = DeepHash(BITS)
    timed("DeepHash", lambda: hasher.fit(data.images, data.classes).score(data.queries, data.query_classes))
    row["codes of"] = hasher.learned_by_
    colour = [np.repeat(part[..., None], 3, 3) if part.ndim == 3 else part for part in (data.images, data.queries)]
    in_colour = data._replace(images=colour[0], queries=colour[1])
    z = hasher.features(data.images)
    itq = HASH_FUNCTIONS["itq"](BITS, random_state=0).fit(z)
    row["ITQ on its features"] = map_of(itq.transform(hasher.features(data.queries)), itq.transform(z), data)
    timed("plain network", lambda: plain_network(in_colour, hasher.chosen_pretraining_))
    for name in ("itq", "sdh"):

        def on_lite0(name: str = name) -> float:
            learned = FeatureHash(HASH_FUNCTIONS[name](BITS), PHOTOGRAPHS).fit(data.images, data.classes)
            return held_out_map(
                learned,
                LabelledImages(np.ascontiguousarray(colour[1].transpose(0, 3, 1, 2)), data.query_classes),
                learned.encode(data.images),
                data.classes,
            )

        timed(f"{name.upper()} on EfficientNet-Lite0", on_lite0)
    return row


def run_pipeline(data: DataSet, project: Path) -> dict[str, float]:
    """MAP of the environment `images`, of which folder and size alone are named; images have at most 96 pixels."""
    raw = project / "data" / "01_raw" / "own"
    for folder in [raw, *project.glob("data/0*/own")]:
        shutil.rmtree(folder, ignore_errors=True)
    for part, images, classes in (("train", data.images, data.classes), ("test", data.queries, data.query_classes)):
        for row, (image, number) in enumerate(zip(images, classes.tolist(), strict=True)):
            file = raw / part / f"{number:03d}" / f"{row:05d}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(file)
    channels = 3 if data.images.ndim == 4 else 1
    source = {"kind": "folder", "image_size": min(96, max(data.images.shape[1:3])), "channels": channels}
    described = {"globals": {"extends": "images", "raw_images": "data/01_raw/own", "source": source}}
    environment = project / "conf" / "variants" / "own.yml"
    environment.write_text(json.dumps(described))
    cells = ("itq.b48", "deephash_pretrained.b48", "deephash.b48")
    stages = ("data_ingestion", "cnn_pretraining", "feature_extraction", *cells)
    began = time.perf_counter()
    command = ["kedro", "run", "--env=own", "--pipelines=full", f"--namespaces={','.join(stages)}"]
    subprocess.run([sys.executable, "-m", *command], cwd=project, check=True, stdout=sys.stderr)
    environment.unlink()
    figures = {"seconds": time.perf_counter() - began}
    for name in cells:
        method, _, bits = name.partition(".")
        metrics = project / "data" / "07_model_output" / "own" / method / bits / "metrics.json"
        figures[method] = json.loads(metrics.read_text())["mean_average_precision"]
    return figures


@click.command()
@click.argument("root", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--only", default="", help="Part of the name of the data sets to measure.")
@click.option("--threads", default=2)
@click.option("--project", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Clone to run in.")
def main(root: Path, only: str, threads: int, project: Path | None) -> None:
    """Measure and print a line of JSON for each data set."""
    torch.set_num_threads(threads)
    for name, make in data_sets(root).items():
        if only in name:
            figures = measure(make()) if project is None else run_pipeline(make(), project)
            print(json.dumps({"data": name, **figures}), flush=True)


if __name__ == "__main__":
    main()
