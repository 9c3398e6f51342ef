"""Hash functions on features of photographs: mAP over the whole database, without labels in any fit.

    python -m benchmarks.studies.photographs caltech101=10 sun119=5 --features features/

Each folder NAME below --photographs has a folder for each class; so many pictures of a class are the queries. Features
are kept in --features, for the next time. Fitted on all pictures of the database, on 200 of them, or on those of half
of the classes, and then queries and searched pictures are those of the other half.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.deephash.features import FeatureExtractor
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.hashing.srh import unit_rows
from deephash_pipeline.retrieval import count_distances, mean_average_precision, pack_bits

METHODS = ("lsh_centred", "sh", "agh", "itq", "srh")
LENGTHS = (64, 128)
FEW = 200


class Fitted(NamedTuple):
    """What is learned from, and what is searched."""

    on: str
    z: NDArray[np.float32]
    queries: NDArray[np.float32]
    sought: NDArray[np.int64]
    database: NDArray[np.float32]
    labels: NDArray[np.int64]


def features_of(folder: Path, kept: Path) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Read features (n, 1280) and classes (n,) of a folder, computed at most once."""
    paths = sorted(folder.rglob("*.jpg"))
    classes = np.unique([path.parent.as_posix() for path in paths], return_inverse=True)[1]
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.save(kept, FeatureExtractor.pretrained().features(paths))
    return np.load(kept), classes


def cases(z: NDArray[np.float32], classes: NDArray[np.int64], queries: int, seed: int) -> Iterator[Fitted]:
    """Draw queries, `queries` of each class, and yield the three cases."""
    generator = np.random.default_rng(seed)
    asking = np.zeros(len(z), bool)
    for number in np.unique(classes):
        asking[generator.choice(np.flatnonzero(classes == number), queries, replace=False)] = True
    searched = (z[asking], classes[asking], z[~asking], classes[~asking])
    yield Fitted("the folder", z[~asking], *searched)
    yield Fitted(f"{FEW} of its pictures", generator.permutation(z[~asking])[:FEW], *searched)
    unknown = np.isin(classes, generator.permutation(classes.max() + 1)[: (classes.max() + 1) // 2])
    parts = (asking & unknown, ~asking & unknown)
    yield Fitted("other classes", z[~asking & ~unknown], *(part[rows] for rows in parts for part in (z, classes)))


def measured(case: Fitted, seed: int) -> Iterator[tuple[str, float]]:
    """Yield a name and a mAP: of cosines, and of each method and code length."""
    units = [unit_rows(rows) for rows in (case.queries, case.database)]
    order = np.argsort(-(units[0] @ units[1].T), axis=1, kind="stable")
    found = case.labels[order] == case.sought[:, np.newaxis]
    precision = np.cumsum(found, axis=1) / np.arange(1, found.shape[1] + 1)
    yield "cosine", float(np.mean((precision * found).sum(axis=1) / found.sum(axis=1)))
    for method in METHODS:
        for length in LENGTHS:
            if length < len(case.z):
                function = HASH_FUNCTIONS[method](length, random_state=seed).fit(case.z)
                codes = [pack_bits(function.transform(rows)) for rows in (case.queries, case.database)]
                counts = count_distances(codes[0], case.sought, codes[1], case.labels, length)
                yield f"{method} {length}", mean_average_precision(counts)


def main() -> None:
    """Print a table for each folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="NAME=QUERIES")
    parser.add_argument("--photographs", type=Path, default=Path("data/01_raw"))
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    arguments: Any = parser.parse_args()
    for named in arguments.folders:
        name, _, queries = named.partition("=")
        z, classes = features_of(arguments.photographs / name, arguments.features / f"{name}.npy")
        table: dict[str, dict[str, list[float]]] = {}
        for seed in arguments.seeds:
            for case in cases(z, classes, int(queries), seed):
                for label, score in measured(case, seed):
                    table.setdefault(label, {}).setdefault(case.on, []).append(score)
        print(f"{name}: {len(z)} pictures, {classes.max() + 1} classes, seeds {arguments.seeds}", flush=True)
        for label, scores in table.items():
            print(
                f"{label:16}", *(f"{on} {np.mean(values):.3f} ± {np.std(values):.3f}" for on, values in scores.items())
            )


if __name__ == "__main__":
    main()
