"""The index beside faiss, its durable writes and its opening: `python -m benchmarks.search`.

Ratios are of CPU times of one thread, measured in turn in one process. With `--quick` the database has 100,000 codes.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.documents import PROJECT, Benchmark, Results, Rows, Settings, rows_by
from benchmarks.measuring import Method, calls_lasting, interleaved, require_packages, use_one_thread
from benchmarks.studies.search_indexes import rows_of_width
from deephash_pipeline.search import HammingIndex

NEIGHBOURS = 100
BATCH = 1000
DISTINCT_TRAINED_CODES = 2767
SECONDS_OF_A_MEASUREMENT = 0.3


@dataclass(frozen=True)
class Case:
    """A comparison with faiss.

    Attributes:
        name: what the table calls it.
        code_length: bits per code.
        items: size of the database.
        queries: queries to a call.
        target: how many times as fast as faiss the index is to be.
        distinct: how many different codes there are; None for codes drawn at random.
    """

    name: str
    code_length: int
    items: int
    queries: int
    target: float
    distinct: int | None = None


def cases(items: int) -> list[Case]:
    """What is compared, for a database of some size."""
    return [
        Case("12 bits, batch", 12, items, BATCH, 12),
        Case("32 bits, batch", 32, items, BATCH, 5),
        Case("48 bits, batch", 48, items, BATCH, 5),
        Case("64 bits, batch", 64, items, BATCH, 4),
        Case("48 bits, one query", 48, items, 1, 2),
        Case("48 bits, few distinct codes, batch", 48, items, BATCH, 200, DISTINCT_TRAINED_CODES),
    ]


def draw(case: Case) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Codes of a database and of queries, uint8 (n, bytes)."""
    rng = np.random.default_rng(case.code_length)

    def codes(count: int) -> NDArray[np.uint8]:
        drawn = rng.integers(0, 256, (count, -(-case.code_length // 8)), dtype=np.uint8)
        drawn[:, -1] &= np.uint8(256 - (1 << (-case.code_length % 8)))
        return drawn

    if case.distinct is None:
        return codes(case.items), codes(case.queries)
    # Fine-tuned codes gather at few points, most of them at the fewest.
    pool = codes(case.distinct)
    return pool[rng.zipf(1.3, case.items) % case.distinct], pool[rng.integers(0, case.distinct, case.queries)]


def compare(case: Case, rounds: int) -> dict[str, Any]:
    """Time the index and faiss's flat index of codes padded to 64 bits, and check that distances agree."""
    import faiss  # noqa: PLC0415 - not a dependency of the project

    faiss.omp_set_num_threads(1)
    database, queries = draw(case)
    flat = faiss.IndexBinaryFlat(64)
    flat.add(rows_of_width(database, 8))
    padded = rows_of_width(queries, 8)
    index = HammingIndex(case.code_length)
    started = time.process_time()
    index.add(np.arange(case.items), database)
    build = time.process_time() - started
    searches: list[tuple[str, Callable[[], Any]]] = [
        ("faiss", lambda: flat.search(padded, NEIGHBOURS)[0]),
        ("index", lambda: index.search(queries, NEIGHBOURS).distances),
    ]
    methods = [Method(name, run, calls_lasting(run, SECONDS_OF_A_MEASUREMENT)) for name, run in searches]
    timings = interleaved(methods, rounds)
    np.testing.assert_array_equal(timings["faiss"].result, timings["index"].result)
    theirs, ours = (1000 * timings[name].cpu_seconds / case.queries for name in ("faiss", "index"))
    return {
        "case": case.name,
        "items": case.items,
        "faiss_ms": theirs,
        "index_ms": ours,
        "ratio": theirs / ours,
        "target": case.target,
        "build_seconds": build,
    }


def measure_folder(items: int, folder: Path, changes: int) -> dict[str, Any]:
    """Build an index in a folder, open it, and time single durable changes and the query that sees them."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (items, 6), dtype=np.uint8)
    # Ids in no order, so that they are stored as they are.
    ids = rng.permutation(2 * items)[:items]
    started = time.perf_counter()
    with HammingIndex.create(folder, 48) as index:
        index.add(ids, codes)
    built = time.perf_counter() - started
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    started = time.perf_counter()
    index = HammingIndex.open(folder)
    opened = time.perf_counter() - started
    result = {"items": items, "build_seconds": built, "open_seconds": opened, "bytes_per_item": size / items}
    queries = rng.integers(0, 256, (BATCH, 6), dtype=np.uint8)
    index.search(queries, NEIGHBOURS)
    started = time.process_time()
    index.search(queries, NEIGHBOURS)
    result["queries_per_second"] = BATCH / (time.process_time() - started)
    adding: list[float] = []
    removing: list[float] = []
    syncing: list[float] = []
    new = rng.integers(0, 256, (changes, 6), dtype=np.uint8)
    probe = folder.parent / "probe"
    with probe.open("wb", buffering=0) as file:
        for number in range(changes):
            adding.append(_seconds(partial(index.add, [2 * items + number], new[number : number + 1])))
            if index.search(new[number : number + 1], 1).distances[0, 0] != 0:
                raise AssertionError("an added item was not found by the next query")
            removing.append(_seconds(partial(index.remove, [int(ids[number])])))
            # What one synchronised write costs on this disk, without any index.
            syncing.append(_seconds(partial(_write_and_sync, file)))
    for name, seconds in (("add", adding), ("remove", removing), ("fsync", syncing)):
        result[f"{name}_p50_ms"], result[f"{name}_p95_ms"] = (1000 * np.percentile(seconds, [50, 95])).tolist()
    index.close()
    return result


def _write_and_sync(file: Any) -> None:
    file.write(bytes(4096))
    os.fsync(file.fileno())


def _seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(settings: Settings) -> Results:
    """Measure all cases, and folders of two sizes."""
    require_packages(["faiss"])
    use_one_thread()
    compared = [compare(case, settings["rounds"]) for case in cases(settings["items"])]
    folders = []
    for size in (settings["items"], settings["large"]):
        with tempfile.TemporaryDirectory() as folder:
            folders.append(measure_folder(size, Path(folder) / "index", settings["changes"]))
    return {"compared": compared, "folders": folders}


def tables(results: Results) -> dict[str, Rows]:
    """Rows of the tables of the document."""
    compared = "codes: {case} | faiss, ms a query: {faiss_ms:.4f} | index, ms a query: {index_ms:.4f}"
    folders = (
        "items: {items:,} | build, s: {build_seconds:.1f} | open, s: {open_seconds:.2f} | bytes a code: "
        "{bytes_per_item:.0f} | queries a second: {queries_per_second:,.0f} | add, p95 ms: {add_p95_ms:.1f} | "
        "remove, p95 ms: {remove_p95_ms:.1f} | fsync alone, p95 ms: {fsync_p95_ms:.1f}"
    )
    return {
        "compared": rows_by(compared + " | times as fast: {ratio:.1f}", results["compared"]),
        "folders": rows_by(folders, results["folders"]),
    }


SEARCH = Benchmark(
    "search",
    measure,
    tables,
    settings={"items": 1_000_000, "large": 10_000_000, "rounds": 5, "changes": 200},
    quick={"items": 100_000, "large": 200_000, "rounds": 1, "changes": 20},
    distributions=("numpy", "numba", "faiss-cpu"),
    document=PROJECT / "docs" / "search.md",
)

if __name__ == "__main__":
    sys.exit(SEARCH.main(__doc__))
