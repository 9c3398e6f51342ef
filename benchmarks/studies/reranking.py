"""What re-ranking gains: `python -m benchmarks.studies.reranking --mnist FOLDER --cifar10 FOLDER`.

The training images of MNIST (the four gzipped files) and CIFAR-10 (folders train/CLASS, test/CLASS) are searched by
test images, encoded by the hashers that come with the package, so that no run is needed: precision among the ten
nearest codes, re-ranked by stored z, re-ranked by the query's outputs, and by z alone.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import measuring
from benchmarks.documents import PROJECT, Benchmark, Results, Settings
from deephash_pipeline import ImageHasher
from deephash_pipeline.hamming import ByFeatures, ByOutputs, HammingIndex
from deephash_pipeline.hashing.linear import LinearEncoder
from deephash_pipeline.images.decoding.image_files import ImageFiles
from deephash_pipeline.images.sources.collection import ImageSet
from deephash_pipeline.images.sources.registry import parse_source
from deephash_pipeline.retrieval import count_distances, pack_bits, precision_at

NEIGHBOURS = 10
QUERIES_AT_ONCE = 100
SOURCES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "mnist": ("MNIST", "mnist-48", {"kind": "torchvision", "name": "MNIST"}),
    "cifar10": ("CIFAR-10", "cifar10-48", {"kind": "folder", "image_size": 32, "channels": 3}),
}
EXPECTED, BY_CODES = "codes, expected over orders of equal distances", "codes, equal distances in order of insertion"
BY_Z, BY_OUTPUTS, Z_ALONE = "codes, re-ranked by z", "codes, re-ranked by outputs", "z alone, no codes"

Floats = NDArray[np.float32]


def outputs_of(hasher: ImageHasher, z: Floats) -> Floats:
    """Real-valued outputs u (n, code_length), whose signs are the bits."""
    assert isinstance(hasher.encoder, LinearEncoder)
    return (z @ hasher.encoder.projection_ - hasher.encoder.threshold_).astype(np.float32)


def features_of(hasher: ImageHasher, images: ImageSet) -> Floats:
    """Responses z to images that lie in an array or in files."""
    listed = images.images
    if isinstance(listed, ImageFiles):
        return hasher.features([listed.root / name for name in listed.names])
    return hasher.features(listed)


def nearest_by_z(queries: Floats, database: Floats) -> NDArray[np.int64]:
    """Rows of the nearest items by Euclidean distance, exactly: int64 (queries, NEIGHBOURS)."""
    squares = np.einsum("ij,ij->i", database, database)
    found = []
    for first in range(0, len(queries), QUERIES_AT_ONCE):
        distances = squares - 2 * queries[first : first + QUERIES_AT_ONCE] @ database.T
        found.append(np.argpartition(distances, NEIGHBOURS, axis=1)[:, :NEIGHBOURS])
    return np.concatenate(found)


def measure_images(folder: Path, name: str, settings: Settings) -> tuple[str, dict[str, dict[str, str]]]:
    """A sentence on one set of images, and precision and CPU time of every order of answers."""
    shown, hasher_name, source = SOURCES[name]
    hasher = ImageHasher.pretrained(hasher_name, device="cpu")
    splits = parse_source(source).read(folder).splits
    # Every so many queries, as files in folders come class by class.
    every = max(1, len(splits["query"]) // settings["queries"])
    database, queries = splits["training"], splits["query"].take(np.arange(0, len(splits["query"]), every))
    z, asked_z = features_of(hasher, database), features_of(hasher, queries)
    labels, asked_labels = database.labels, queries.labels
    measuring.use_one_thread()
    codes, asked = (pack_bits(hasher.encoder.transform(each)) for each in (z, asked_z))
    u = outputs_of(hasher, asked_z)
    if not np.array_equal(pack_bits(u >= 0), asked):
        raise AssertionError("the signs of the outputs are not the bits")
    index = HammingIndex(hasher.code_length, hasher.z_dimension)
    index.add(np.arange(len(codes)), codes, features=z)
    histograms = count_distances(asked, asked_labels, codes, labels, hasher.code_length)
    as_near = np.cumsum(histograms.all, axis=1)
    tenth = np.argmax(as_near >= NEIGHBOURS, axis=1)
    searches: dict[str, Callable[[], NDArray[Any]]] = {
        BY_CODES: lambda: index.search(asked, NEIGHBOURS).ids,
        BY_Z: lambda: index.search(asked, NEIGHBOURS, rerank=ByFeatures(asked_z, settings["shortlist"])).ids,
        BY_OUTPUTS: lambda: index.search(asked, NEIGHBOURS, rerank=ByOutputs(u, settings["shortlist"])).ids,
        Z_ALONE: lambda: nearest_by_z(asked_z, z),
    }
    index.search(asked[:1], NEIGHBOURS)
    precision, milliseconds = f"{shown}, precision@{NEIGHBOURS}", f"{shown}, ms a query"
    rows = {EXPECTED: {precision: f"{np.mean(precision_at(histograms, NEIGHBOURS)):.4f}", milliseconds: ""}}
    for order, search in searches.items():
        started = time.process_time()
        found = search()
        taken = 1000 * (time.process_time() - started) / len(asked)
        right = labels[found] == asked_labels[:, None]
        rows[order] = {precision: f"{np.mean(right):.4f}", milliseconds: f"{taken:.3f}"}
    ties = np.median(as_near[np.arange(len(asked)), tenth])
    sentence = (
        f"{shown}: {len(codes):,} training images, {len(asked):,} test images as queries, `{hasher_name}`, z of "
        f"{hasher.z_dimension:,} numbers; the median query has {ties:,.0f} items as near as the tenth."
    )
    return sentence, rows


def _measure(settings: Settings) -> Results:
    measured = [measure_images(Path(settings[name]), name, settings) for name in SOURCES]
    (_, mnist), (_, cifar10) = measured
    rows = [{"order of the answers": order} | mnist[order] | cifar10[order] for order in mnist]
    # Where the images lie is no part of what was measured.
    shown = {name: value for name, value in settings.items() if name not in SOURCES}
    sentences = "\n\n".join(sentence for sentence, _ in measured)
    return {"tables": {"images": sentences, "precision": rows}, "settings": shown}


RERANKING = Benchmark(
    "reranking",
    _measure,
    settings={"mnist": "data/01_raw/mnist", "cifar10": "data/01_raw/cifar10", "queries": 10_000, "shortlist": 1000},
    quick={"queries": 500},
    distributions=("numpy", "torch"),
    document=PROJECT / "docs" / "search.md",
)

if __name__ == "__main__":
    sys.exit(RERANKING.main(__doc__))
