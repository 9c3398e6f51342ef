"""The index beside faiss, its durable writes and its opening: `python -m benchmarks.search`.

Ratios are of CPU times of one thread, measured in turn in one process. With `--quick` the database has 100,000 codes.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.documents import PROJECT, Benchmark, Results, Rows, Settings, rows_by
from benchmarks.measuring import Method, calls_lasting, interleaved, require_packages, use_one_thread
from benchmarks.studies.search_indexes import rows_of_width
from deephash_pipeline import ImageHasher
from deephash_pipeline.engines import GatheredIndex, export_index
from deephash_pipeline.engines.exported import ExportedIndex
from deephash_pipeline.engines.milvus import MilvusIndex
from deephash_pipeline.engines.postgres import PostgresIndex
from deephash_pipeline.image_index import ImageIndex
from deephash_pipeline.search import HammingIndex
from tests.engines import servers

NEIGHBOURS = 100
BATCH = 1000
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
    seconds: dict[str, list[float]] = {"add": [], "remove": [], "fsync": []}
    new = rng.integers(0, 256, (changes, 6), dtype=np.uint8)
    probe = folder.parent / "probe"
    with probe.open("wb", buffering=0) as file:
        for number in range(changes):
            seconds["add"].append(_seconds(partial(index.add, [2 * items + number], new[number : number + 1])))
            if index.search(new[number : number + 1], 1).distances[0, 0] != 0:
                raise AssertionError("an added item was not found by the next query")
            seconds["remove"].append(_seconds(partial(index.remove, [int(ids[number])])))
            # What one synchronised write costs on this disk, without any index.
            seconds["fsync"].append(_seconds(partial(_write_and_sync, file)))
    for name, each in seconds.items():
        result[f"{name}_p50_ms"], result[f"{name}_p95_ms"] = (1000 * np.percentile(each, [50, 95])).tolist()
    index.close()
    return result


def measure_engines(items: int, queries: int, folder: Path) -> list[dict[str, Any]]:
    """Ask the same of the index, of three services with a third each, of PostgreSQL and of Milvus; all must agree."""
    rng = np.random.default_rng(1)
    codes, asked = (rng.integers(0, 256, (count, 6), dtype=np.uint8) for count in (items, queries))
    names, hasher = [f"item {row}" for row in range(items)], ImageHasher.pretrained("digits-48", device="cpu")
    (folder / "milvus").mkdir()

    def index_of(rows: slice) -> HammingIndex:
        index = HammingIndex(48)
        index.add(names[rows], codes[rows])
        return index

    thirds = [slice(third * items // 3, (third + 1) * items // 3) for third in range(3)]
    with ExitStack() as stack:
        services = [
            stack.enter_context(servers.service({"part": ImageIndex(hasher, index_of(rows))})) for rows in thirds
        ]
        whole, found = index_of(slice(None)), []
        engines: dict[str, Any] = {"HammingIndex": whole, "three services": GatheredIndex(services)}
        engines["PostgreSQL, pgvector"] = PostgresIndex(
            stack.enter_context(servers.postgres(folder / "postgres")), "codes"
        )
        engines["Milvus Lite"] = MilvusIndex(stack.enter_context(servers.milvus(folder / "milvus")), "codes")
        expected = whole.search(asked, NEIGHBOURS)
        for name, engine in engines.items():
            load = _seconds(partial(export_index, whole, engine)) if isinstance(engine, ExportedIndex) else 0.0
            started = time.perf_counter()
            answers = engine.search(asked, NEIGHBOURS)
            batch = time.perf_counter() - started
            single = [_seconds(partial(engine.search, asked[row : row + 1], NEIGHBOURS)) for row in range(10)]
            same = (answers.ids == expected.ids) & (answers.distances == expected.distances)
            cost = {"single_ms": 1000 * float(np.median(single)), "batch_ms": 1000 * batch / queries, "load": load}
            found.append({"engine": name, "items": items, "queries": queries, "agree": int(same.all(1).sum()), **cost})
        return found


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
    compared = [compare(case, settings["items"], settings["rounds"]) for case in CASES]
    folders = []
    for size in (settings["items"], settings["large"]):
        with tempfile.TemporaryDirectory() as folder:
            folders.append(measure_folder(size, Path(folder) / "index", settings["changes"]))
    with tempfile.TemporaryDirectory() as folder:
        engines = measure_engines(settings["engine_items"], settings["queries"], Path(folder))
    return {"compared": compared, "folders": folders, "engines": engines}


def tables(results: Results) -> dict[str, Rows]:
    """Rows of the tables of the document."""
    compared = "codes: {case} | faiss, ms a query: {faiss_ms:.4f} | index, ms a query: {index_ms:.4f}"
    folders = (
        "items: {items:,} | build, s: {build_seconds:.1f} | open, s: {open_seconds:.2f} | bytes a code: "
        "{bytes_per_item:.0f} | queries a second: {queries_per_second:,.0f} | add, p95 ms: {add_p95_ms:.1f} | "
        "remove, p95 ms: {remove_p95_ms:.1f} | fsync alone, p95 ms: {fsync_p95_ms:.1f}"
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
    settings={"items": 1_000_000, "large": 10_000_000, "rounds": 5, "changes": 200}
    | {"engine_items": 1_000_000, "queries": 1000},
    quick={"items": 100_000, "large": 200_000, "rounds": 1, "changes": 20, "engine_items": 3000, "queries": 50},
    distributions=("numpy", "numba", "faiss-cpu"),
    document=PROJECT / "docs" / "search.md",
)

if __name__ == "__main__":
    sys.exit(SEARCH.main(__doc__))
