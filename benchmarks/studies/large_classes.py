"""Codes of photographs where classes are small, and where they are few and large: mAP and precision at 10.

    python -m benchmarks.studies.large_classes caltech101 sun119 --features features/

Each folder NAME below --photographs has a folder for each class. A seed halves the classes; parameters were chosen on
the half `choose`. Five pictures of each class search the others; on these functions are fitted, without labels.
The ten groups are of classes whose mean features are near to each other (Ward), so they favour what orders by features.
Features are kept in --features, for the next time.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from benchmarks.studies.copies import HALVES, drawn_from
from benchmarks.studies.photographs import pictures_of
from deephash_pipeline.deephash import FeatureExtractor
from deephash_pipeline.hashing import ITQ, SRH
from deephash_pipeline.hashing.linear import LinearHashFunction
from deephash_pipeline.photographs.fitted import DIFFUSION
from deephash_pipeline.retrieval import count_distances, mean_average_precision, pack_bits, precision_at

LENGTHS = (64, 128)
GROUPS, QUERIES = 10, 5


def functions(length: int, seed: int) -> dict[str, LinearHashFunction]:
    """What is compared, the last as an index of photographs fits it."""
    return {
        "ITQ": ITQ(length, random_state=seed),
        "SRH": SRH(length, random_state=seed),
        "SRH, diffusion": SRH(length, random_state=seed, diffusion=DIFFUSION),
    }


def features_of(paths: list[Path], kept: Path) -> NDArray[np.float32]:
    """Read features (n, 1280) of pictures, computed once."""
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.save(kept, FeatureExtractor.pretrained(unit_length=True, device="cpu").features(paths))
    return np.load(kept)  # type: ignore[no-any-return]


def groups_of(z: NDArray[np.float32], classes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number (n,) of the group of each row's class."""
    means = np.stack([z[classes == number].mean(axis=0) for number in range(classes.max() + 1)])
    return np.asarray(fcluster(linkage(means, "ward"), GROUPS, "maxclust")[classes] - 1, np.int64)


def main() -> None:
    """Print a line for each function."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="NAME")
    parser.add_argument("--photographs", type=Path, default=Path("data/01_raw"))
    parser.add_argument("--features", type=Path, default=Path("features"))
    parser.add_argument("--half", choices=HALVES, default=HALVES[1])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    arguments: Any = parser.parse_args()
    for name in arguments.folders:
        paths, classes = pictures_of(arguments.photographs / name)
        z = features_of(paths, arguments.features / f"{name}.npy")
        half = np.isin(classes, drawn_from(arguments.half, classes.max() + 1))
        z, classes = z[half], np.unique(classes[half], return_inverse=True)[1]
        kinds = {"classes": classes, f"{GROUPS} groups": groups_of(z, classes)}
        print(f"{name}: {len(z)} pictures, {classes.max() + 1} classes, seeds {arguments.seeds}", flush=True)
        for length in LENGTHS:
            found: dict[tuple[str, str], list[tuple[float, float]]] = {}
            for seed in arguments.seeds:
                order = np.random.default_rng(seed).permutation(len(z))
                ranks = np.empty(len(z), np.int64)
                for number in range(classes.max() + 1):
                    own = order[classes[order] == number]
                    ranks[own] = np.arange(len(own))
                queries, database = np.flatnonzero(ranks < QUERIES), np.flatnonzero(ranks >= QUERIES)
                for method, function in functions(length, seed).items():
                    codes = pack_bits(function.fit(z[database]).transform(z))
                    for kind, of in kinds.items():
                        counts = count_distances(codes[queries], of[queries], codes[database], of[database], length)
                        figures = mean_average_precision(counts), float(precision_at(counts, 10).mean())
                        found.setdefault((kind, method), []).append(figures)
            for (kind, method), figures in found.items():
                means = " / ".join(f"{figure:.3f}" for figure in np.mean(figures, axis=0))
                print(f"{length:4} bits, {kind:10} {method:16} mAP / precision at 10: {means}", flush=True)


if __name__ == "__main__":
    main()
