"""Approximate search beside exact search: `python -m benchmarks.studies.approximate_search`.

Codes of a trained model and of a classical one, those of a finished MNIST run, are searched by faiss's indexes at two
sizes of the database. `docs/results/approximate-search.md` shows the results; its findings are written by hand.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks import measuring
from benchmarks.documents import PROJECT, Benchmark, Results, Rows, Settings, rows_by, three_digits
from benchmarks.studies.runs import finished_run
from benchmarks.studies.search_indexes import FLAT_UNPADDED, SETTINGS, SLOW, BuiltIndex, Setting, quality
from deephash_pipeline.common.cell import Cell
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.progress import track
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.hashing import Encoder
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.pipelines.grid import METHODS
from deephash_pipeline.pipelines.shared.hashers import hasher_of
from deephash_pipeline.retrieval import count_distances, distinct_codes, pack_bits
from deephash_pipeline.training import outputs_in_blocks, resolve_device

CELLS = tuple(Cell(method=method, code_length=48) for method in ("deephash", "itq"))
GOOD_RECALL = 0.99
EXTRAPOLATED_ITEMS = (10_000_000, 100_000_000)

Codes = NDArray[np.uint8]
Entry = dict[str, Any]


class MovedImages(ImageInputs):
    """Images as network inputs, each moved by one draw that depends on the seed of the version and its block alone."""

    version_seed = 0

    def batch(self, indices: NDArray[np.int64], seed: int | None = None, first: int = 0) -> Tensor:
        """Moved images at `indices`, normalised."""
        return super().batch(indices, derive_seed(self.version_seed, int(indices[0])))


def augmented_codes(
    images: MovedImages, trunk: nn.Module, encoder: Encoder, seed: int, versions: int
) -> NDArray[np.uint8]:
    """Encode `versions` augmented versions of n images: packed codes (versions * n, bytes), version after version.

    Random bits would make a poor stand-in for a large database: codes of images lie in clumps, and many are equal.
    """
    codes = []
    for version in track(range(versions), "encoding augmented images", versions):
        images.version_seed = derive_seed(seed, "augmented codes", version)
        codes.append(pack_bits(encoder.transform(outputs_in_blocks(trunk, images))))
    return np.concatenate(codes)


class Database(NamedTuple):
    """Packed codes (items, bytes) under a name, and what asks for the nearest of them."""

    name: str
    code_length: int
    codes: Codes
    queries: Codes


def measure_database(searched: Database, settings: Settings, indexes: Sequence[Setting] = SETTINGS) -> Entry:
    """Build all indexes of a database, and search it by all: their cost and quality.

    The first index must be exact: its answers say how far the k-th nearest item is.
    """
    name, code_length, database, queries = searched
    if len(database) < max(settings["neighbours"]):
        raise InputError(
            f"{name} has {len(database)} codes: give at least {max(settings['neighbours'])}, the largest k"
        )
    queries = queries[:: max(1, len(queries) // settings["queries"])][: settings["queries"]]
    built = [BuiltIndex(index, database) for index in track(indexes, f"{name}: building", len(indexes))]
    searches = [(index, parameters) for index in built for parameters in index.setting.searches]
    entries: list[Entry] = []
    for index, parameters in searches:
        family, build, _ = index.setting
        cost = {"build_seconds": index.build_seconds, "bytes_per_item": index.size / len(database)}
        entries.append({"family": family, "build": dict(build), "search": dict(parameters), **cost, "neighbours": {}})
    few = max(1, min(len(queries), settings["slow_pairs"] // len(database)))
    counts = [few if index.setting.family in SLOW else len(queries) for index, _ in searches]
    unlabelled = [np.zeros(len(codes), dtype=np.int64) for codes in (queries, database)]
    histograms = count_distances(queries, unlabelled[0], database, unlabelled[1], code_length)
    # Items nearer than each distance, and than one beyond the last: (queries, code_length + 2).
    nearer_than = np.pad(np.cumsum(histograms.all, axis=1), ((0, 0), (1, 0)))
    every_query, ties = np.arange(len(queries)), {}
    for k in track(settings["neighbours"], f"{name}: searching", len(settings["neighbours"])):
        last = built[0].searcher(queries, k, {})()[0][:, -1].astype(np.int64)
        nearer = nearer_than[every_query, last]
        ties[str(k)] = {"median_items_as_near": float(np.median(nearer_than[every_query, last + 1]))}
        methods = []
        for (index, parameters), count in zip(searches, counts, strict=True):
            search = index.searcher(queries[:count], k, parameters)
            calls = measuring.calls_lasting(search, settings["seconds_of_a_measurement"])
            methods.append(measuring.Method(str(len(methods)), search, calls))
        timings = measuring.interleaved(methods, settings["rounds"]).values()
        for entry, timing, count in zip(entries, timings, counts, strict=True):
            measured = quality(database, queries[:count], timing.result[1], last[:count], nearer[:count])
            entry["neighbours"][str(k)] = {**measured, "cpu_seconds": timing.cpu_seconds / count, "queries": count}
    sizes = {"items": len(database), "distinct_codes": distinct_codes(database), "queries": len(queries)}
    return {"codes": name, "code_length": code_length, **sizes, "ties": ties, "indexes": entries}


def _measure(settings: Settings) -> Results:
    """Measure every cell's codes twice: those of the images as they are, and those of moved images."""
    measuring.require_packages(["faiss"])
    device, cells = resolve_device("auto"), []
    with finished_run(settings["environment"]) as catalog:
        experiment = catalog.load("params:experiment")
        augmentation = catalog.load("params:fine_tuning.deephash").augmentation
        images = (catalog.load("training_images"), catalog.load("pixel_statistics"), device, augmentation)
        for cell in CELLS:
            hasher = hasher_of(catalog, cell)
            trunk, encoder, codes = hasher.trunk.to(device), hasher.encoder, catalog.load(f"{cell.namespace}.codes")
            moved = augmented_codes(MovedImages(*images), trunk, encoder, experiment.seed, settings["versions"])
            name, length = cell.namespace, codes.code_length
            cells += [Database(name, length, database, codes.query) for database in (codes.database, moved)]
    measuring.use_one_thread()
    import_module("faiss").omp_set_num_threads(1)
    found = {"databases": [measure_database(cell, settings) for cell in cells]}
    return {"augmentation": augmentation.model_dump(), **found, "tables": tables(found)}


EXACT = (
    "codes: {codes} | items: {items:,} | codes in memory, MB: {mb} | ms a query: {ms} | queries/s: {rate} | : {origin}"
)


def tables(results: Results) -> dict[str, Rows | str]:
    """Rows: exact search by size, the best setting of each index in the largest databases, and all of each."""
    exact: list[Entry] = []
    best: list[Entry] = []
    every: dict[str, list[Entry]] = {}
    for database in results["databases"]:
        codes, items, of_family = codes_name(database["codes"]), database["items"], {}
        exact_seconds = database["indexes"][0]["neighbours"]["10"]["cpu_seconds"]
        # Measured, and extrapolated from the largest database if time goes on growing linearly.
        largest = items == max(other["items"] for other in results["databases"] if other["codes"] == database["codes"])
        for count in (items, *(EXTRAPOLATED_ITEMS if largest else ())):
            numbers = {
                "mb": 8e-6 * count,
                "ms": 1e3 * exact_seconds * count / items,
                "rate": items / count / exact_seconds,
            }
            origin = "measured" if count == items else "extrapolated"
            shown = {name: three_digits(number) for name, number in numbers.items()}
            exact.append({"codes": codes, "items": count, "origin": origin, **shown})
        rows = every[f"{database['codes']} {items}"] = []
        for entry in database["indexes"]:
            cost = {"build, s": three_digits(entry["build_seconds"]), "bytes an item": f"{entry['bytes_per_item']:.0f}"}
            row = named(entry)
            rows.append({**row, **cost})
            for k, measured in entry["neighbours"].items():
                fewer = f" ({measured['queries']})" if measured["queries"] < database["queries"] else ""
                columns, seconds = found(k, measured), measured["cpu_seconds"]
                rows[-1] |= {**columns, f"recall@{k}": columns[f"recall@{k}"] + fewer}
                rows[-1] |= {
                    f"µs a query, {k}": three_digits(1e6 * seconds),
                    f"queries/s, {k}": three_digits(1 / seconds),
                }
            ten = entry["neighbours"]["10"]
            speed = {"µs a query": three_digits(1e6 * ten["cpu_seconds"])}
            speed["exact / this"] = three_digits(exact_seconds / ten["cpu_seconds"])
            # The fastest of those that find enough, else the one that finds most, in italics.
            good = ten["recall"] >= GOOD_RECALL
            order = (not good, 0 if good else -ten["recall"], ten["cpu_seconds"])
            columns = found("10", ten)
            columns |= {} if good else {"recall@10": f"*{columns['recall@10']}*"}
            candidate = {"codes": codes, "items": f"{items:,}", **row, **columns, **speed, **cost}
            of_family.setdefault(entry["family"], []).append((order, candidate))
        if largest:
            best += [min(of, key=itemgetter(0))[1] for family, of in of_family.items() if family != FLAT_UNPADDED]
    return {"exact": rows_by(EXACT, exact), "best": best, **every}


def named(entry: Entry) -> dict[str, str]:
    """The index and its setting, as columns of a table."""
    setting = {**entry["build"], **entry["search"]}
    return {"index": entry["family"], "setting": ", ".join(f"{name} {value}" for name, value in setting.items())}


def found(k: str, measured: Entry) -> dict[str, str]:
    """Recall and, for results that have it, strictly nearer items found; nothing where there are none."""
    columns = {f"recall@{k}": f"{measured['recall']:.4f}"}
    if "strictly_nearer_found" in measured:
        share = measured["strictly_nearer_found"]
        columns[f"strictly nearer found@{k}"] = "" if share is None else f"{share:.4f}"
    return columns


def codes_name(cell: str) -> str:
    """Name of a cell in the project's tables."""
    return METHODS.get(cell.partition(".")[0], cell)


APPROXIMATE_SEARCH = Benchmark(
    "approximate_search",
    _measure,
    settings={"environment": "mnist", "versions": 20, "neighbours": (10, 100), "queries": 1000}
    | {"slow_pairs": 100_000_000, "rounds": 3, "seconds_of_a_measurement": 0.05},
    quick={"versions": 1, "rounds": 1},
    distributions=("numpy", "faiss-cpu", "torch"),
    document=PROJECT / "docs" / "results" / "approximate-search.md",
)

if __name__ == "__main__":
    sys.exit(APPROXIMATE_SEARCH.main(__doc__))
