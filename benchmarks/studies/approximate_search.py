"""Approximate search beside exact search: `python -m benchmarks.studies.approximate_search`.

Codes of a trained model and of a classical one, those of a finished MNIST run, are searched by faiss's indexes at two
sizes of the database. `docs/results/approximate-search.md` shows the results; its findings are written by hand.
"""

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import measuring
from benchmarks.documents import PROJECT, Benchmark, Results, Rows, Settings, rows_by, three_digits
from benchmarks.studies.augmented_codes import MovedImages, augmented_codes
from benchmarks.studies.runs import finished_run
from benchmarks.studies.search_indexes import FLAT, FLAT_UNPADDED, SETTINGS, SLOW, BuiltIndex, Setting, quality
from deephash_pipeline.errors import InputError
from deephash_pipeline.grid import METHODS
from deephash_pipeline.networks import build_trunk
from deephash_pipeline.progress import track
from deephash_pipeline.retrieval import count_distances, distinct_codes
from deephash_pipeline.training import resolve_device

# A method's cell, and the trunk that its z comes from.
TRUNKS = {"deephash.b48": "deephash.b48.tuned_trunk_weights", "itq.b48": "trunk_weights"}
GOOD_RECALL = 0.99
EXTRAPOLATED_ITEMS = (10_000_000, 100_000_000)

Codes = NDArray[np.uint8]
Entry = dict[str, Any]


def measure_database(
    name: str,
    code_length: int,
    database: Codes,
    queries: Codes,
    settings: Settings,
    indexes: Sequence[Setting] = SETTINGS,
) -> dict[str, Any]:
    """Build all indexes of a database of packed codes (items, bytes), and search it by all: their cost and quality.

    The first index must be exact: its answers say how far the k-th nearest item is.
    """
    if len(database) < max(settings["neighbours"]):
        raise InputError(
            f"{name} has {len(database)} codes: give at least {max(settings['neighbours'])}, the largest k"
        )
    queries = queries[:: max(1, len(queries) // settings["queries"])][: settings["queries"]]
    description = f"{name}, {len(database):,} codes"
    built = [BuiltIndex(index, database) for index in track(indexes, f"{description}: building", len(indexes))]
    searches = [(index, parameters) for index in built for parameters in index.setting.searches]
    entries: list[Entry] = [
        {
            "family": index.setting.family,
            "build": dict(index.setting.build),
            "search": dict(parameters),
            "build_seconds": index.build_seconds,
            "bytes_per_item": index.size / len(database),
            "neighbours": {},
        }
        for index, parameters in searches
    ]
    few = max(1, min(len(queries), settings["slow_pairs"] // len(database)))
    counts = [few if index.setting.family in SLOW else len(queries) for index, _ in searches]
    unlabelled = [np.zeros(len(codes), dtype=np.int64) for codes in (queries, database)]
    histograms = count_distances(queries, unlabelled[0], database, unlabelled[1], code_length)
    # Items nearer than each distance, and than one beyond the last: (queries, code_length + 2).
    nearer_than = np.pad(np.cumsum(histograms.all, axis=1), ((0, 0), (1, 0)))
    every_query, ties = np.arange(len(queries)), {}
    for k in track(settings["neighbours"], f"{description}: searching", len(settings["neighbours"])):
        last = built[0].searcher(queries, k, {})()[0][:, -1].astype(np.int64)
        nearer = nearer_than[every_query, last]
        ties[str(k)] = {"median_items_as_near": float(np.median(nearer_than[every_query, last + 1]))}
        methods = []
        for number, ((index, parameters), count) in enumerate(zip(searches, counts, strict=True)):
            search = index.searcher(queries[:count], k, parameters)
            calls = measuring.calls_lasting(search, settings["seconds_of_a_measurement"])
            methods.append(measuring.Method(str(number), search, calls))
        timings = measuring.interleaved(methods, settings["rounds"]).values()
        for entry, timing, count in zip(entries, timings, counts, strict=True):
            found = quality(database, queries[:count], timing.result[1], last[:count], nearer[:count])
            entry["neighbours"][str(k)] = {**found, "cpu_seconds": timing.cpu_seconds / count, "queries": count}
    return {
        "codes": name,
        "code_length": code_length,
        "items": len(database),
        "distinct_codes": distinct_codes(database),
        "queries": len(queries),
        "ties": ties,
        "indexes": entries,
    }


def _measure(settings: Settings) -> Results:
    """Measure every cell's codes twice: those of the images as they are, and those of moved images."""
    measuring.require_packages(["faiss"])
    device, cells = resolve_device("auto"), {}
    with finished_run(settings["environment"]) as catalog:
        experiment = catalog.load("params:experiment")
        augmentation = catalog.load("params:fine_tuning.deephash").augmentation
        images = (catalog.load("training_images"), catalog.load("pixel_statistics"), device, augmentation)
        for cell, weights in TRUNKS.items():
            trunk, encoder = build_trunk(experiment.network).to(device), catalog.load(f"{cell}.encoder")
            trunk.load_state_dict(catalog.load(weights))
            moved = augmented_codes(MovedImages(*images), trunk, encoder, experiment.seed, settings["versions"])
            cells[cell] = (catalog.load(f"{cell}.codes"), moved)
    measuring.use_one_thread()
    import_module("faiss").omp_set_num_threads(1)
    databases = [
        measure_database(cell, codes.code_length, database, codes.query, settings)
        for cell, (codes, moved) in cells.items()
        for database in (codes.database, moved)
    ]
    return {"augmentation": augmentation.model_dump(), "databases": databases}


def tables(results: Results) -> dict[str, Rows | str]:
    """Rows of the tables of the document."""
    databases = results["databases"]
    of_each = {f"{database['codes']} {database['items']}": _all_rows(database) for database in databases}
    return {"exact": _exact_rows(databases), "best": _best_rows(databases), **of_each}


EXACT = (
    "codes: {codes} | items: {items:,} | codes in memory, MB: {megabytes} | ms a query: {ms} | queries/s: {rate} | "
    ": {origin}"
)


def _exact_rows(databases: Sequence[Entry]) -> Rows:
    """What exact search takes at the measured sizes, and at larger ones if time goes on growing linearly."""
    rows = []
    for codes in dict.fromkeys(database["codes"] for database in databases):
        seconds = {one["items"]: _exact_seconds(one) for one in databases if one["codes"] == codes}
        largest = max(seconds)
        beyond = {items: seconds[largest] * items / largest for items in EXTRAPOLATED_ITEMS if items > largest}
        for items, taken in [*sorted(seconds.items()), *beyond.items()]:
            numbers = {"megabytes": 8e-6 * items, "ms": 1e3 * taken, "rate": 1 / taken}
            shown = {name: three_digits(number) for name, number in numbers.items()}
            origin = "measured" if items in seconds else "extrapolated"
            rows.append({"codes": codes_name(codes), "items": items, "origin": origin, **shown})
    return rows_by(EXACT, rows)


def _best_rows(databases: Sequence[Entry]) -> Iterator[dict[str, str]]:
    """For every database and kind of index, the fastest setting that finds enough of the ten nearest."""
    for database in databases:
        entries = [{**entry, **entry["neighbours"]["10"]} for entry in database["indexes"]]
        for family in dict.fromkeys(entry["family"] for entry in entries if entry["family"] != FLAT_UNPADDED):
            own = [entry for entry in entries if entry["family"] == family]
            good = [entry for entry in own if entry["recall"] >= GOOD_RECALL]
            best = min(good or own, key=lambda entry: (0 if good else -entry["recall"], entry["cpu_seconds"]))
            mark = "" if good else "*"
            yield {
                "codes": codes_name(database["codes"]),
                "items": f"{database['items']:,}",
                "index": family,
                "setting": _parameters(best),
                **_found("10", best, mark, mark),
                "µs a query": three_digits(1e6 * best["cpu_seconds"]),
                "exact / this": three_digits(_exact_seconds(database) / best["cpu_seconds"]),
                **_cost(best),
            }


def _all_rows(database: Entry) -> Iterator[dict[str, str]]:
    """Everything measured on one database."""
    for entry in database["indexes"]:
        row = {"index": entry["family"], "setting": _parameters(entry), **_cost(entry)}
        for k, measured in entry["neighbours"].items():
            row |= _found(
                k, measured, "", f" ({measured['queries']})" if measured["queries"] < database["queries"] else ""
            )
            row[f"µs a query, {k}"] = three_digits(1e6 * measured["cpu_seconds"])
            row[f"queries/s, {k}"] = three_digits(1 / measured["cpu_seconds"])
        yield row


def _cost(entry: Entry) -> dict[str, str]:
    return {"build, s": three_digits(entry["build_seconds"]), "bytes an item": f"{entry['bytes_per_item']:.0f}"}


def _found(k: str, measured: Entry, before: str, after: str) -> dict[str, str]:
    """Recall and, for results that have it, strictly nearer items found; nothing where there are none."""
    columns = {f"recall@{k}": f"{before}{measured['recall']:.4f}{after}"}
    if "strictly_nearer_found" in measured:
        share = measured["strictly_nearer_found"]
        columns[f"strictly nearer found@{k}"] = "" if share is None else f"{share:.4f}"
    return columns


def _exact_seconds(database: Entry) -> float:
    exact = next(entry for entry in database["indexes"] if entry["family"] == FLAT)
    return float(exact["neighbours"]["10"]["cpu_seconds"])


def _parameters(entry: Entry) -> str:
    return ", ".join(f"{name} {value}" for name, value in {**entry["build"], **entry["search"]}.items())


def codes_name(cell: str) -> str:
    """Name of a cell in the project's tables."""
    return METHODS.get(cell.partition(".")[0], cell)


APPROXIMATE_SEARCH = Benchmark(
    "approximate_search",
    _measure,
    tables,
    settings={
        "environment": "mnist",
        "versions": 20,
        "neighbours": (10, 100),
        "queries": 1000,
        "slow_pairs": 100_000_000,
        "rounds": 3,
        "seconds_of_a_measurement": 0.05,
    },
    quick={"versions": 1, "rounds": 1},
    distributions=("numpy", "faiss-cpu", "torch"),
    document=PROJECT / "docs" / "results" / "approximate-search.md",
)

if __name__ == "__main__":
    sys.exit(APPROXIMATE_SEARCH.main(__doc__))
