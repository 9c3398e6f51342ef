"""Curves of a benchmark as stored numbers, and as pictures, in the manner of the paper's Figure 4.

    python -m benchmarks.studies.curves measure mnist FOLDER         # codes of shipped hashers and of cheap methods
    python -m benchmarks.studies.curves collect kaggle_face          # or of all cells of a run of the pipeline
    python -m benchmarks.studies.curves draw                         # every stored table, as a picture
    python -m benchmarks.studies.curves gallery cifar10 FOLDER       # queries beside their nearest images, in data/

FOLDER has the files of MNIST (`*-ubyte.gz`), or `train/<class>/*` and `test/<class>/*`. The training images are the
database, of MNIST the first 50,000. Methods on features take those of the shipped hasher's trunk, on Kaggle-Face GIST,
and are fitted on the database with their defaults and seed 42.
"""

import argparse
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL import Image

from deephash_pipeline import ImageHasher
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.images.descriptors.gist import GistParameters, gist
from deephash_pipeline.pipelines.grid import METHODS
from deephash_pipeline.reports.panels import method_styles
from deephash_pipeline.retrieval import count_distances, pack_bits
from deephash_pipeline.retrieval.counting import DistanceHistograms
from deephash_pipeline.retrieval.curves import (
    PrecisionRecallCurve,
    precision_recall_by_radius,
    precision_recall_by_rank,
)
from deephash_pipeline.retrieval.metrics import precision_within_radius

PROJECT = Path(__file__).resolve().parents[2]
TABLES, PICTURES = PROJECT / "docs/results/curves", PROJECT / "docs/images"
HASHERS = {"mnist": "mnist-48", "cifar10": "cifar10-48"}
TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10", "kaggle_face": "Kaggle-Face"}
CHEAP, CODE_LENGTHS, SHOWN_LENGTH = ("lsh", "itq", "ksh", "sdh"), (12, 24, 48), 48
DEEPHASH, SEED, RADIUS = "deephash", 42, 2
RANKS = np.unique(np.geomspace(1, 5000, 25).astype(np.int64))
MNIST_DATABASE = 50_000
GALLERY_ROWS, GALLERY_COLUMNS = 6, 10


class Images(NamedTuple):
    """Images, uint8 (n, channels, height, width), and their labels, int64 (n,)."""

    pixels: NDArray[np.uint8]
    labels: NDArray[np.int64]


def read_images(folder: Path) -> tuple[Images, Images]:
    """Read the database and the queries of a folder."""
    if (folder / "train-images-idx3-ubyte.gz").is_file():
        database, queries = read_idx(folder, "train"), read_idx(folder, "t10k")
        return Images(database.pixels[:MNIST_DATABASE], database.labels[:MNIST_DATABASE]), queries
    return read_folder(folder / "train"), read_folder(folder / "test")


def read_idx(folder: Path, part: str) -> Images:
    """Read one part of MNIST."""
    pixels = np.frombuffer(gzip.decompress((folder / f"{part}-images-idx3-ubyte.gz").read_bytes()), np.uint8, offset=16)
    labels = np.frombuffer(gzip.decompress((folder / f"{part}-labels-idx1-ubyte.gz").read_bytes()), np.uint8, offset=8)
    return Images(pixels.reshape(-1, 1, 28, 28), labels.astype(np.int64))


def read_folder(folder: Path) -> Images:
    """Read images that lie in a folder for each class."""
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
    files = [(file, label) for label, name in enumerate(classes) for file in sorted((folder / name).iterdir())]
    pixels = np.stack([np.atleast_3d(np.asarray(Image.open(file))).transpose(2, 0, 1) for file, _ in files])
    return Images(pixels, np.array([label for _, label in files]))


def features(benchmark: str, images: Images) -> NDArray[np.float32]:
    """Compute the features of images: those of the shipped hasher's trunk, or GIST."""
    if (name := HASHERS.get(benchmark)) is None:
        return gist(images.pixels, GistParameters(), torch.device("cpu"))
    return ImageHasher.pretrained(name, device="cpu").extractor(images.pixels)


def points(name: str, bits: int, histograms: DistanceHistograms) -> Iterator[dict[str, Any]]:
    """Yield the rows of a method at one code length: as those of `precision_recall.csv`, and one of kind "within"."""
    within, _ = precision_within_radius(histograms, RADIUS)
    curves = {
        "radius": precision_recall_by_radius(histograms),
        "rank": precision_recall_by_rank(histograms, RANKS),
        "within": PrecisionRecallCurve(np.array([RADIUS]), np.array([within.mean()]), np.array([np.nan])),
    }
    for kind, curve in curves.items():
        for point, precision, recall in zip(curve.point, curve.precision, curve.recall, strict=True):
            row = {"method": name, "code_length": bits, "kind": kind, "point": int(point)}
            yield {**row, "precision": round(float(precision), 4), "recall": round(float(recall), 4)}


def measure(benchmark: str, folder: Path) -> pd.DataFrame:
    """Count the curves of the shipped hasher and of the cheap methods."""
    database, queries = read_images(folder)
    of_database, of_queries = (features(benchmark, images) for images in (database, queries))
    encoders = {(name, bits): HASH_FUNCTIONS[name](bits, random_state=SEED) for name in CHEAP for bits in CODE_LENGTHS}
    rows: list[dict[str, Any]] = []
    for (name, bits), encoder in encoders.items():
        encoder.fit(of_database, database.labels)
        codes = (pack_bits(encoder.transform(z)) for z in (of_queries, of_database))
        rows += points(name, bits, counts(*codes, queries, database, bits))
    if benchmark in HASHERS:
        own = ImageHasher.pretrained(HASHERS[benchmark], device="cpu").encoder
        codes = (pack_bits(own.transform(z)) for z in (of_queries, of_database))
        rows += points(DEEPHASH, SHOWN_LENGTH, counts(*codes, queries, database, SHOWN_LENGTH))
    return pd.DataFrame(rows)


def counts(
    query_codes: NDArray[np.uint8], codes: NDArray[np.uint8], queries: Images, database: Images, bits: int
) -> DistanceHistograms:
    """Count the database by its distance from each query."""
    return count_distances(query_codes, queries.labels, codes, database.labels, bits)


def collect(benchmark: str) -> pd.DataFrame:
    """Gather the curves of all cells that a run has evaluated, thinned to the ranks of the stored tables."""
    folder = PROJECT / "data/07_model_output" / benchmark
    files = sorted(folder.glob("*/b*/precision_recall.csv"))
    if not files:
        raise SystemExit(f"{folder} has no curves: kedro run --env={benchmark} --pipelines=full")
    found = pd.concat([pd.read_csv(file) for file in files])
    balls = found[(found["kind"] == "radius") & (found["point"] == RADIUS)].assign(kind="within")
    kept = found[(found["kind"] == "radius") | found["point"].isin(RANKS)]
    return pd.concat([kept, balls]).round(4)


def draw(benchmark: str, curves: pd.DataFrame, file: Path) -> None:
    """Draw precision against recall, precision within radius 2 by code length, and precision of the first k."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - `make .venv/notebook` has it

    figure = Figure(figsize=(13, 4.2), layout="constrained")
    by_recall, within, first = figure.subplots(1, 3)
    styles = method_styles({name: METHODS[name] for name in METHODS if name in set(curves["method"])})
    for name in [name for name in METHODS if name in set(curves["method"])]:
        own, look = curves[curves["method"] == name], {"color": styles[name].colour, "label": METHODS[name]}
        shown = own[own["code_length"] == SHOWN_LENGTH]
        radius, rank = (shown[shown["kind"] == kind] for kind in ("radius", "rank"))
        by_recall.plot(radius["recall"], radius["precision"], marker=".", markersize=4, **look)
        balls = own[own["kind"] == "within"].sort_values("code_length")
        within.plot(balls["code_length"], balls["precision"], marker="o", **look)
        first.plot(rank["point"], rank["precision"], **look)
    for axes, title, label in (
        (by_recall, f"Precision and recall, {SHOWN_LENGTH} bits", "Recall"),
        (within, f"Precision within radius {RADIUS}", "Bits"),
        (first, f"Precision of the first k, {SHOWN_LENGTH} bits", "k"),
    ):
        axes.set(title=title, xlabel=label, ylim=(0, 1.02))
        axes.grid(alpha=0.3)
    within.set_xticks(CODE_LENGTHS)
    first.set_xscale("log")
    by_recall.set_ylabel("Precision")
    by_recall.legend(fontsize="small")
    figure.suptitle(TITLES.get(benchmark, benchmark))
    figure.savefig(file, dpi=110)


def gallery(benchmark: str, folder: Path, file: Path) -> None:
    """Show a query of each of six classes beside its nearest images; frames are green for its class, red for others."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    database, queries = read_images(folder)
    hasher = ImageHasher.pretrained(HASHERS[benchmark], device="cpu")
    generator = np.random.default_rng(SEED)
    shown = [generator.choice(np.flatnonzero(queries.labels == label)) for label in range(GALLERY_ROWS)]
    codes, sought = hasher.encode(database.pixels), hasher.encode(queries.pixels[shown])
    figure = Figure(figsize=(GALLERY_COLUMNS + 1.6, GALLERY_ROWS * 1.05), layout="constrained")
    for axes, query, code in zip(figure.subplots(GALLERY_ROWS, GALLERY_COLUMNS + 1), shown, sought, strict=True):
        distances = np.bitwise_count(codes ^ code).sum(axis=1)
        nearest = np.lexsort((generator.random(len(codes)), distances))[:GALLERY_COLUMNS]
        tiles = [(queries, query, None), *((database, row, int(distances[row])) for row in nearest)]
        for place, (images, row, distance) in zip(axes, tiles, strict=True):
            place.imshow(images.pixels[row].transpose(1, 2, 0).squeeze(), cmap="gray")
            place.set(xticks=[], yticks=[])
            place.set_xlabel("query" if distance is None else distance, fontsize=8, labelpad=1)
            right = images.labels[row] == queries.labels[query]
            for edge in place.spines.values():
                edge.set(color="black" if distance is None else "#1a7f37" if right else "#cf222e", linewidth=2.5)
    figure.savefig(file, dpi=80)
    # A quarter of the bytes, and no difference that an eye sees at this size.
    Image.open(file).convert("RGB").quantize(256).save(file, optimize=True)


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("measure", "gallery"):
        own = commands.add_parser(command)
        own.add_argument("benchmark", choices=sorted(TITLES if command == "measure" else HASHERS))
        own.add_argument("folder", type=Path)
    commands.add_parser("collect").add_argument("benchmark")
    commands.add_parser("draw")
    given = parser.parse_args()
    torch.set_num_threads(1)
    TABLES.mkdir(parents=True, exist_ok=True)
    if given.command == "draw":
        for file in sorted(TABLES.glob("*.csv")):
            draw(file.stem, pd.read_csv(file), PICTURES / f"curves-{file.stem}.png")
    elif given.command == "gallery":
        gallery(given.benchmark, given.folder, Path(f"data/08_reporting/gallery-{given.benchmark}.png"))
    else:
        made = measure(given.benchmark, given.folder) if given.command == "measure" else collect(given.benchmark)
        made.to_csv(TABLES / f"{given.benchmark}.csv", index=False)


if __name__ == "__main__":
    main()
