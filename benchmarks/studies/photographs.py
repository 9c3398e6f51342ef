"""Hash functions on features of photographs: mAP over the whole database, without labels in any fit.

    python -m benchmarks.studies.photographs caltech101=10 sun119=5 --features features/

Each folder NAME below --photographs has a folder for each class; so many pictures of a class are the queries. Features
are kept in --features, for the next time. Fitted on all pictures of the database, on 200 of them, or on those of half
or of 70 % of the classes, and then queries and searched pictures are those of the others. With labels of half of the
classes, the fit sees all pictures, and the queries of each half search their own half.

Hashes of pixels are measured with --methods pixels, without features; imagehash and pdqhash are in the group `bench`.

Losses train a hash layer on the features, the views of CIBHash being crops and mirror images. The losses' rates and
AGH's anchors are those of the best mAP at 64 bits on the folder, by a draw of queries of its own.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.nn.functional import interpolate

from benchmarks.measuring import versions_of
from benchmarks.studies.copies import PEERS, peers
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash.features import FeatureExtractor
from deephash_pipeline.hashing import HASH_FUNCTIONS, SRH
from deephash_pipeline.hashing.srh import unit_length_rows
from deephash_pipeline.images.batches import image_batches
from deephash_pipeline.losses import LOSSES, ExponentiatedLoss
from deephash_pipeline.retrieval import count_distances, mean_average_precision, pack_bits

METHODS = ("lsh_centred", "sh", "agh", "itq", "srh")
TRAINED = ("cibhash", "bihalf", "greedy_hash_unsupervised", "exponentiated")
RATES = (0.0001, 0.0003, 0.001, 0.003)
ANCHORS = (100, 200, 400, 800)
LENGTHS = (64, 128)
FEW = 200
EPOCHS, BATCH, NEIGHBOURS = 60, 128, 10
CROP = 180

Transform = Callable[[NDArray[np.float32]], NDArray[np.bool_]]


class Fitted(NamedTuple):
    """Which rows are learned from, and which are the queries and searched; classes of the first, -1 for not known."""

    on: str
    rows: NDArray[np.int64]
    queries: NDArray[np.int64]
    database: NDArray[np.int64]
    labels: NDArray[np.int64] | None = None


def pictures_of(folder: Path) -> tuple[list[Path], NDArray[np.int64]]:
    """List a folder's pictures, and number their classes (n,)."""
    paths = sorted(folder.resolve().rglob("*.jpg"))
    return paths, np.unique([path.parent.as_posix() for path in paths], return_inverse=True)[1]


def pixel_codes(paths: list[Path]) -> dict[str, NDArray[np.uint8]]:
    """Hash pictures by their pixels: codes (n, bytes)."""
    import imagehash  # noqa: PLC0415 - nothing else needs it

    codes = {name: of_all[:, 0] for name, of_all in peers(paths).items()}
    codes["pHash 64"] = np.stack([np.packbits(imagehash.phash(Image.open(path)).hash) for path in paths])
    return codes


def features_of(paths: list[Path], kept: Path) -> NDArray[np.float32]:
    """Read features (3, n, 1280) of pictures and of two views of each, computed once."""
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        extractor, generator = FeatureExtractor.pretrained(), np.random.default_rng(0)
        blocks = []
        for batch in image_batches(paths, extractor.image_shape, 256, "raise"):
            views = [np.stack([view_of(image, generator) for image in batch.pixels]) for _ in range(2)]
            blocks.append(np.stack([extractor(pixels) for pixels in (batch.pixels, *views)]))
        np.save(kept, np.concatenate(blocks, axis=1))
    return np.load(kept)  # type: ignore[no-any-return]


def view_of(image: NDArray[np.uint8], generator: np.random.Generator) -> NDArray[np.uint8]:
    """Cut `CROP` of 224 pixels out of an image (3, 224, 224), enlarge it again, and mirror every second one."""
    top, left = generator.integers(0, image.shape[1] - CROP + 1, 2)
    part = torch.from_numpy(image[:, top : top + CROP, left : left + CROP].astype(np.float32))
    view = interpolate(part[None], image.shape[1:], mode="bilinear")[0].round().to(torch.uint8).numpy()
    return np.asarray(view[..., ::-1] if generator.random() < 0.5 else view)


def cases(classes: NDArray[np.int64], queries: int, seed: int) -> Iterator[Fitted]:
    """Draw queries, `queries` of each class, and yield what is measured."""
    generator = np.random.default_rng(seed)
    asking = np.zeros(len(classes), bool)
    for number in np.unique(classes):
        asking[generator.choice(np.flatnonzero(classes == number), queries, replace=False)] = True
    searched = (np.flatnonzero(asking), np.flatnonzero(~asking))
    yield Fitted("the folder", searched[1], *searched)
    yield Fitted(f"{FEW} of its pictures", generator.permutation(searched[1])[:FEW], *searched)
    order = generator.permutation(classes.max() + 1)
    half = np.isin(classes, order[: len(order) // 2])
    parts = [(np.flatnonzero(asking & part), np.flatnonzero(~asking & part)) for part in (half, ~half)]
    yield Fitted("other classes", parts[1][1], *parts[0])
    few = np.isin(classes, order[: round(0.3 * len(order))])
    yield Fitted(
        "70 % of the classes", np.flatnonzero(~few), np.flatnonzero(asking & few), np.flatnonzero(~asking & few)
    )
    for name, part in zip(("unlabelled", "labelled"), parts, strict=True):
        labels = np.where(half, -1, classes)[searched[1]]
        yield Fitted(f"half labelled: the {name}", searched[1], *part, labels)


def trained(name: str, length: int, z: NDArray[np.float32], seed: int, rate: float) -> Transform:
    """Train a hash layer by a loss on features (3, n, D) of images and of two views of each."""
    torch.manual_seed(seed)
    centre = z[0].mean(axis=0)
    images, *views = (torch.from_numpy(unit_length_rows(of - centre)) for of in z)
    scale = images.shape[1] ** 0.5
    layer = torch.nn.Linear(images.shape[1], length)
    torch.nn.init.normal_(layer.weight, std=1 / scale)
    loss = ExponentiatedLoss(loss_scale="unit", balance_pairs=True) if name == "exponentiated" else LOSSES[name]()
    labels = mutual_neighbours(images) if name == "exponentiated" else torch.zeros(len(images), dtype=torch.int64)
    steps = EPOCHS * (len(images) // BATCH)
    optimiser = torch.optim.Adam(layer.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(images))[: len(images) // BATCH * BATCH].split(BATCH):
            inputs = torch.cat([view[rows] for view in views]) if loss.views == 2 else images[rows]
            u = layer(scale * inputs)
            optimiser.zero_grad()
            loss(
                (u, inputs) if loss.reads_features else u, labels[rows].repeat(loss.views, *[1] * (labels.ndim - 1))
            ).backward()
            optimiser.step()
            schedule.step()
    weight, bias = (part.detach().numpy() for part in (layer.weight, layer.bias))
    return lambda features: scale * unit_length_rows(features - centre) @ weight.T + bias >= 0


def mutual_neighbours(images: torch.Tensor) -> torch.Tensor:
    """Label k of image i: whether each is among the nearest of the other, or both are one; uint8 (n, n)."""
    cosines = images @ images.T
    near = torch.zeros_like(cosines).scatter_(1, cosines.topk(NEIGHBOURS + 1).indices, 1)
    return (near * near.T).to(torch.uint8)


def searches(z: NDArray[np.float32], case: Fitted) -> Iterator[tuple[str, list[Callable[[int, int], Transform]]]]:
    """Yield the name of a method, and its settings: of a code length and a seed, what makes bits of features."""
    own = z[:, case.rows]

    def fitted(method: str, length: int, seed: int, **options: Any) -> Transform:
        function = HASH_FUNCTIONS[method](length, random_state=seed, **options)
        if function.supervised and case.labels is not None and not isinstance(function, SRH):
            known = case.labels >= 0
            return function.fit(own[0][known], case.labels[known]).transform  # type: ignore[no-any-return]
        return function.fit(own[0], case.labels).transform  # type: ignore[no-any-return]

    for method in METHODS:
        settings = [{"anchors": count} for count in ANCHORS if count < own.shape[1]] if method == "agh" else [{}]
        yield method, [partial(fitted, method, **options) for options in settings]
    if case.labels is not None:
        yield "itq_cca, labels", [partial(fitted, "itq_cca")]
        yield "srh, labels", [partial(fitted, "srh", supervised=True)]
    elif case.on == "the folder":
        for name in TRAINED:
            yield (
                name,
                [lambda length, seed, name=name, rate=rate: trained(name, length, own, seed, rate) for rate in RATES],
            )


def score(transform: Transform, z: NDArray[np.float32], classes: NDArray[np.int64], case: Fitted) -> float:
    """MAP of codes."""
    return of_codes([pack_bits(transform(z[rows])) for rows in (case.queries, case.database)], classes, case)


def of_codes(codes: list[NDArray[np.uint8]], classes: NDArray[np.int64], case: Fitted) -> float:
    """MAP of codes of the queries that search codes of the database."""
    length = 8 * codes[0].shape[1]
    return mean_average_precision(
        count_distances(codes[0], classes[case.queries], codes[1], classes[case.database], length)
    )


def of_cosines(z: NDArray[np.float32], classes: NDArray[np.int64], case: Fitted) -> float:
    """MAP of the features themselves."""
    queries, database = (unit_length_rows(z[rows]) for rows in (case.queries, case.database))
    order = np.argsort(-(queries @ database.T), axis=1, kind="stable")
    found = classes[case.database][order] == classes[case.queries][:, np.newaxis]
    precision = np.cumsum(found, axis=1) / np.arange(1, found.shape[1] + 1)
    return float(np.mean((precision * found).sum(axis=1) / found.sum(axis=1)))


def main() -> None:
    """Print a table for each folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="NAME=QUERIES")
    parser.add_argument("--photographs", type=Path, default=Path("data/01_raw"))
    parser.add_argument("--features", type=Path, default=Path("features"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--methods", nargs="+", help="only these")
    arguments: Any = parser.parse_args()
    if arguments.methods == ["pixels"]:
        try:
            versions_of(PEERS)
        except InputError as error:
            parser.error(str(error))
    for named in arguments.folders:
        name, _, queries = named.partition("=")
        paths, classes = pictures_of(arguments.photographs / name)
        print(f"{name}: {len(classes)} pictures, {classes.max() + 1} classes, seeds {arguments.seeds}", flush=True)
        draws = [list(cases(classes, int(queries), seed)) for seed in arguments.seeds]
        if arguments.methods == ["pixels"]:
            for method, codes in pixel_codes(paths).items():
                found = [of_codes([codes[of[0].queries], codes[of[0].database]], classes, of[0]) for of in draws]
                print(f"{'the folder':26} {method:26} {np.mean(found):.3f} ± {np.std(found):.3f}", flush=True)
            continue
        z = features_of(paths, arguments.features / f"{name}.views.npy")
        search = next(cases(classes, int(queries), seed=0))
        best: dict[str, int] = {}
        for case_of_seeds in zip(*draws, strict=True):
            on = case_of_seeds[0].on
            cosines = [of_cosines(z[0], classes, case) for case in case_of_seeds]
            print(f"{on:26} {'cosine':26} {np.mean(cosines):.3f} ± {np.std(cosines):.3f}", flush=True)
            for method, settings in searches(z, case_of_seeds[0]):
                if arguments.methods and method not in arguments.methods:
                    continue
                if len(settings) > 1 and method not in best:
                    makers = dict(searches(z, search))[method]
                    best[method] = int(
                        np.argmax([score(make(LENGTHS[0], 0), z[0], classes, search) for make in makers])
                    )
                    print(f"{method}: of {len(makers)} settings the {best[method] + 1}. is best", flush=True)
                for length in LENGTHS:
                    found = []
                    for seed, case in zip(arguments.seeds, case_of_seeds, strict=True):
                        makers = dict(searches(z, case))[method]
                        make = makers[min(best.get(method, 0), len(makers) - 1)]
                        found.append(score(make(length, seed), z[0], classes, case))
                    print(f"{on:26} {method:26} {length:4} bits {np.mean(found):.3f} ± {np.std(found):.3f}", flush=True)


if __name__ == "__main__":
    main()
