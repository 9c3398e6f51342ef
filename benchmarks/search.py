"""The index beside faiss, its durable writes and its opening: `python -m benchmarks.search`.

Ratios are of CPU times of one thread, measured in turn in one process. With `--huge 100000000` a third folder has so
many codes; with `--quick` the database has 100,000.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.codes import rows_of_width
from benchmarks.documents import PROJECT, Benchmark, Results, Settings
from benchmarks.index_folders import BATCH, NEIGHBOURS, measure_in_new_process
from benchmarks.measuring import Method, calls_lasting, interleaved, require_packages, use_one_thread
from benchmarks.search_engines import measure_engines
from deephash_pipeline.search import HammingIndex

DISTINCT_TRAINED_CODES = 2767
SECONDS_OF_A_MEASUREMENT = 0.3


class Case(NamedTuple):
    """A comparison with faiss; how many codes differ (None: drawn freely)."""

    name: str
    code_length: int
    queries: int
    distinct: int | None = None


WIDTHS = (48, 64, 128, 256, 512, 1024, 2048, 4096)
CASES = (
    Case("12 bits, batch", 12, BATCH),
    *(Case(f"{bits} bits, batch", bits, BATCH) for bits in WIDTHS),
    *(Case(f"{bits} bits, one query", bits, 1) for bits in WIDTHS),
    Case("48 bits, few distinct codes, batch", 48, BATCH, DISTINCT_TRAINED_CODES),
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


def compare(case: Case, items: int, rounds: int) -> dict[str, str]:
    """Time the index and faiss's flat index of codes padded to words, and check that distances agree; a row."""
    import faiss  # noqa: PLC0415 - not a dependency of the project

    faiss.omp_set_num_threads(1)
    database, queries = draw(case, items)
    width = 8 * -(-case.code_length // 64)
    flat = faiss.IndexBinaryFlat(8 * width)
    flat.add(rows_of_width(database, width))
    padded = rows_of_width(queries, width)
    index = HammingIndex(case.code_length)
    index.add(np.arange(items), database)
    searches: list[tuple[str, Callable[[], Any]]] = [
        ("faiss", lambda: flat.search(padded, NEIGHBOURS)[0]),
        ("index", lambda: index.search(queries, NEIGHBOURS).distances),
    ]
    methods = [Method(name, run, calls_lasting(run, SECONDS_OF_A_MEASUREMENT)) for name, run in searches]
    timings = interleaved(methods, rounds)
    np.testing.assert_array_equal(timings["faiss"].result, timings["index"].result)
    theirs, ours = (1000 * timings[name].cpu_seconds / case.queries for name in ("faiss", "index"))
    return {
        "codes": case.name,
        "faiss, ms a query": f"{theirs:.4f}",
        "index, ms a query": f"{ours:.4f}",
        "times as fast": f"{theirs / ours:.1f}",
    }


def measure(settings: Settings) -> Results:
    """Measure all cases, folders of several sizes, and other engines."""
    require_packages(["faiss", "usearch"])
    use_one_thread()
    compared = [compare(case, settings["items"], settings["rounds"]) for case in CASES]
    sizes = [settings[name] for name in ("items", "large", "huge") if settings[name]]
    folders = [measure_in_new_process(size, settings["changes"]) for size in sizes]
    with tempfile.TemporaryDirectory() as folder:
        engines = measure_engines(settings["engine_items"], settings["queries"], Path(folder))
    return {"tables": {"compared": compared, "folders": folders, "engines": engines}}


SEARCH = Benchmark(
    "search",
    measure,
    settings={"items": 1_000_000, "large": 10_000_000, "huge": 0, "rounds": 5, "changes": 200}
    | {"engine_items": 1_000_000, "queries": 1000},
    quick={"items": 100_000, "large": 200_000, "rounds": 1, "changes": 20, "engine_items": 3000, "queries": 50},
    distributions=("numpy", "numba", "faiss-cpu", "usearch"),
    document=PROJECT / "docs" / "search.md",
)

if __name__ == "__main__":
    sys.exit(SEARCH.main(__doc__))
