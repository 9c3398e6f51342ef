"""The index beside faiss, its durable writes and its opening: `python -m benchmarks.search`.

Ratios are of CPU times of one thread, measured in turn in one process. With `--huge 100000000` a third folder has so
many codes; with `--quick` the database has 100,000.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.documents import PROJECT, Benchmark, Results, Rows, Settings, rows_by
from benchmarks.index_folders import BATCH, NEIGHBOURS, measure_in_new_process
from benchmarks.measuring import Method, calls_lasting, interleaved, require_packages, use_one_thread
from benchmarks.search_engines import measure_engines
from benchmarks.studies.search_indexes import rows_of_width
from deephash_pipeline.search import HammingIndex

DISTINCT_TRAINED_CODES = 2767
SECONDS_OF_A_MEASUREMENT = 0.3


class Case(NamedTuple):
    """A comparison with faiss: the ratio that is wanted, and how many codes differ (None: drawn freely)."""

    name: str
    code_length: int
    queries: int
    target: float
    distinct: int | None = None


CASES = (
    Case("12 bits, batch", 12, BATCH, 12),
    Case("32 bits, batch", 32, BATCH, 5),
    Case("48 bits, batch", 48, BATCH, 5),
    Case("64 bits, batch", 64, BATCH, 4),
    Case("48 bits, one query", 48, 1, 2),
    Case("48 bits, few distinct codes, batch", 48, BATCH, 200, DISTINCT_TRAINED_CODES),
)


def draw(case: Case, items: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Codes of a database and of queries, uint8 (n, bytes)."""
    rng = np.random.default_rng(case.code_length)

    def codes(count: int) -> NDArray[np.uint8]:
        drawn = rng.integers(0, 256, (count, -(-case.code_length // 8)), dtype=np.uint8)
        drawn[:, -1] &= np.uint8(256 - (1 << (-case.code_length % 8)))
        return drawn

    if case.distinct is None:
        return codes(items), codes(case.queries)
    # Fine-tuned codes gather at few points, most of them at the fewest.
    pool = codes(case.distinct)
    return pool[rng.zipf(1.3, items) % case.distinct], pool[rng.integers(0, case.distinct, case.queries)]


def compare(case: Case, items: int, rounds: int) -> dict[str, Any]:
    """Time the index and faiss's flat index of codes padded to 64 bits, and check that distances agree."""
    import faiss  # noqa: PLC0415 - not a dependency of the project

    faiss.omp_set_num_threads(1)
    database, queries = draw(case, items)
    flat = faiss.IndexBinaryFlat(64)
    flat.add(rows_of_width(database, 8))
    padded = rows_of_width(queries, 8)
    index = HammingIndex(case.code_length)
    started = time.process_time()
    index.add(np.arange(items), database)
    build = time.process_time() - started
    searches: list[tuple[str, Callable[[], Any]]] = [
        ("faiss", lambda: flat.search(padded, NEIGHBOURS)[0]),
        ("index", lambda: index.search(queries, NEIGHBOURS).distances),
    ]
    methods = [Method(name, run, calls_lasting(run, SECONDS_OF_A_MEASUREMENT)) for name, run in searches]
    timings = interleaved(methods, rounds)
    np.testing.assert_array_equal(timings["faiss"].result, timings["index"].result)
    theirs, ours = (1000 * timings[name].cpu_seconds / case.queries for name in ("faiss", "index"))
    found = {"faiss_ms": theirs, "index_ms": ours, "ratio": theirs / ours, "build_seconds": build}
    return {"case": case.name, "items": items, "target": case.target, **found}


def measure(settings: Settings) -> Results:
    """Measure all cases, folders of several sizes, and other engines."""
    require_packages(["faiss", "usearch"])
    use_one_thread()
    compared = [compare(case, settings["items"], settings["rounds"]) for case in CASES]
    sizes = [settings[name] for name in ("items", "large", "huge") if settings[name]]
    folders = [measure_in_new_process(size, settings["changes"]) for size in sizes]
    with tempfile.TemporaryDirectory() as folder:
        engines = measure_engines(settings["engine_items"], settings["queries"], Path(folder))
    return {"compared": compared, "folders": folders, "engines": engines}


def tables(results: Results) -> dict[str, Rows]:
    """Rows of the tables of the document."""
    compared = "codes: {case} | faiss, ms a query: {faiss_ms:.4f} | index, ms a query: {index_ms:.4f}"
    folders = (
        "items: {items:,} | build, s: {build_seconds:.1f} | open, s: {open_seconds:.2f} | bytes a code: "
        "{bytes_per_item:.0f} | queries a second: {queries_per_second:,.0f} | add, p95 ms: {add_p95_ms:.1f} | "
        "remove, p95 ms: {remove_p95_ms:.1f} | fsync alone, p95 ms: {fsync_p95_ms:.1f} | MiB at the peak: "
        "{mebibytes_peak:,.0f}"
    )
    engines = (
        "engine: {engine} | codes: {items:,} | written, s: {load:.0f} | ms, one query: {single_ms:.1f} | "
        "ms a query, batch: {batch_ms:.2f} | queries: {queries:,} | answered alike: {agree:,}"
    )
    return {
        "compared": rows_by(compared + " | times as fast: {ratio:.1f}", results["compared"]),
        "folders": rows_by(folders, results["folders"]),
        "engines": rows_by(engines, results["engines"]),
    }


SEARCH = Benchmark(
    "search",
    measure,
    tables,
    settings={"items": 1_000_000, "large": 10_000_000, "huge": 0, "rounds": 5, "changes": 200}
    | {"engine_items": 1_000_000, "queries": 1000},
    quick={"items": 100_000, "large": 200_000, "rounds": 1, "changes": 20, "engine_items": 3000, "queries": 50},
    distributions=("numpy", "numba", "faiss-cpu", "usearch"),
    document=PROJECT / "docs" / "search.md",
)

if __name__ == "__main__":
    sys.exit(SEARCH.main(__doc__))
