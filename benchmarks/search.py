"""The index beside faiss and usearch, its durable writes and its opening: `python -m benchmarks.search`.

Ratios are of CPU times of one thread, measured in turn in one process, for this processor and as if it had AVX2 alone;
from 1,024 bits on of three tenths of the codes. With `--huge 100000000` a third folder has so many codes; with
`--quick` the database has 100,000.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks import near_pairs
from benchmarks.codes import rows_of_width
from benchmarks.documents import PROJECT, Benchmark, Results, Settings
from benchmarks.index_folders import NEIGHBOURS, measure_in_new_process
from benchmarks.measuring import Method, calls_lasting, interleaved, use_one_thread
from benchmarks.processes import in_new_process
from benchmarks.search_engines import UsearchArray, measure_engines
from deephash_pipeline.hamming import HammingIndex
from deephash_pipeline.hamming.conditions import Where

DISTINCT_TRAINED_CODES = 2767
SECONDS_OF_A_MEASUREMENT = 0.3
QUERIES = 200
USEARCH_QUERIES = 2
LONG_BITS, LONG_SHARE = 1024, 0.3
AVX2_ALONE = {"FAISS_SIMD_LEVEL": "AVX2", "NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ""}


class Case(NamedTuple):
    """Codes to compare with faiss: how many differ (None: drawn freely), whether they lie between a few points."""

    name: str
    code_length: int
    distinct: int | None = None
    clustered: bool = False


CASES = (
    *(Case(f"{bits} bits", bits) for bits in (12, 48, 64, 128, 256, 512, 1024, 4096)),
    *(Case(f"{bits} bits, clustered", bits, clustered=True) for bits in (128, 512)),
    Case("48 bits, few distinct codes", 48, DISTINCT_TRAINED_CODES),
)
CONDITIONS = (64, 256)
ASKED = {"batch": QUERIES, "one query": 1}


def draw(case: Case, items: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Codes of a database and of queries, uint8 (n, bytes)."""
    rng = np.random.default_rng(case.code_length)
    if case.clustered:
        drawn = near_pairs.draw(near_pairs.Case(case.code_length, 0), items + QUERIES)
        return drawn[:items], drawn[items:]

    def codes(count: int) -> NDArray[np.uint8]:
        drawn = rng.integers(0, 256, (count, -(-case.code_length // 8)), dtype=np.uint8)
        drawn[:, -1] &= np.uint8(256 - (1 << (-case.code_length % 8)))
        return drawn

    if case.distinct is None:
        return codes(items), codes(QUERIES)
    # Fine-tuned codes gather at few points, most of them at the fewest.
    pool = codes(case.distinct)
    return pool[rng.zipf(1.3, items) % case.distinct], pool[rng.integers(0, case.distinct, QUERIES)]


def in_turn(searches: Mapping[str, Callable[[], Any]], rounds: int, queries: int) -> tuple[dict[str, float], list[Any]]:
    """Time searches in turn: CPU milliseconds a query, and what each returned."""
    methods = [Method(name, run, calls_lasting(run, SECONDS_OF_A_MEASUREMENT)) for name, run in searches.items()]
    timings = interleaved(methods, rounds)
    return (
        {name: 1000 * timing.cpu_seconds / queries for name, timing in timings.items()},
        [timings[name].result for name in searches],
    )


def compare(case: Case, items: int, rounds: int) -> dict[str, str]:
    """Time the index, faiss's flat index and usearch of codes padded to words; distances agree; a row."""
    import faiss  # noqa: PLC0415 - not a dependency of the project

    faiss.omp_set_num_threads(1)
    database, queries = draw(case, items)
    width = 8 * -(-case.code_length // 64)
    flat = faiss.IndexBinaryFlat(8 * width)
    flat.add(rows_of_width(database, width))
    index = HammingIndex(case.code_length)
    index.add(np.arange(items), database)
    row = {"codes": case.name}
    for asked, count in ASKED.items():
        some = queries[:count]
        searches: dict[str, Callable[[], Any]] = {
            "faiss": partial(_distances, flat, rows_of_width(some, width)),
            "index": partial(_index_distances, index, some),
        }
        taken, (theirs, ours) = in_turn(searches, rounds, len(some))
        np.testing.assert_array_equal(theirs, ours)
        row |= {f"{asked}, {name}, ms a query": f"{taken[name]:.4f}" for name in searches}
        row[f"{asked}, times as fast"] = f"{taken['faiss'] / taken['index']:.2f}"
    exact, begin = UsearchArray(database, width), time.process_time()
    beside = exact.search(queries[:USEARCH_QUERIES], NEIGHBOURS).distances
    row["usearch, ms a query"] = f"{1000 * (time.process_time() - begin) / USEARCH_QUERIES:.0f}"
    np.testing.assert_array_equal(beside, index.search(queries[:USEARCH_QUERIES], NEIGHBOURS).distances)
    return row


def _distances(flat: Any, queries: NDArray[np.uint8]) -> Any:
    return flat.search(queries, NEIGHBOURS)[0]


def _index_distances(index: HammingIndex, queries: NDArray[np.uint8], where: Where | None = None) -> Any:
    return index.search(queries, NEIGHBOURS, where).distances


def items_of(code_length: int, items: int) -> int:
    """How many codes of a length are searched."""
    return items if code_length < LONG_BITS else int(LONG_SHARE * items)


def compare_all(items: int, rounds: int) -> list[dict[str, str]]:
    """All comparisons, on the processor that numba and faiss are told of."""
    use_one_thread()
    return [compare(case, items_of(case.code_length, items), rounds) for case in CASES]


def beside_plain(code_length: int, items: int, rounds: int) -> list[dict[str, str]]:
    """CPU time of searches with conditions, removals and so on in ratio to a plain one; rows."""
    database, queries = draw(Case("", code_length), items)
    rng = np.random.default_rng(code_length)
    ids, tenths = np.arange(items), {"tenth": (np.arange(items) % 10).tolist()}
    indexes = {name: HammingIndex(code_length) for name in ("plain", "1 % removed", "half removed")}
    for index in indexes.values():
        index.add(ids, database, tenths if index is indexes["plain"] else None)
    indexes["1 % removed"].remove(rng.choice(items, items // 100, replace=False))
    indexes["half removed"].remove(rng.choice(items, items // 2, replace=False))
    indexes["equal codes grouped"] = HammingIndex(code_length)
    indexes["equal codes grouped"].add(ids, database[rng.integers(0, items, items)])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        with HammingIndex.create(Path(folder) / "index", code_length) as written:
            written.add(ids, database)
        indexes["memory map"] = HammingIndex.open(Path(folder) / "index", read_only=True)
        for asked, count in ASKED.items():
            some = queries[:count]
            searches = {name: partial(_index_distances, index, some) for name, index in indexes.items()}
            for name, where in (
                ("a tenth left", {"tenth": 3}),
                ("half left", {"tenth": {"<": 5}}),
                ("nine tenths left", {"tenth": {"!=": 3}}),
            ):
                searches[name] = partial(_index_distances, indexes["plain"], some, where)
            if len(some) > 1:
                searches["two threads"] = partial(_on_two_threads, searches["plain"])
            taken, _ = in_turn(searches, rounds, len(some))
            plain = taken.pop("plain")
            rows.append(
                {"codes": f"{code_length:,} bits, {asked}", "plain, ms a query": f"{plain:.4f}"}
                | {name: f"{milliseconds / plain:.2f}" for name, milliseconds in taken.items()}
                | ({} if len(some) > 1 else {"two threads": ""})
            )
        indexes["memory map"].close()
    return rows


def _on_two_threads(search: Callable[[], Any]) -> Any:
    numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    try:
        return search()
    finally:
        numba.set_num_threads(1)


def measure(settings: Settings) -> Results:
    """Measure all cases on both kinds of processor, conditions, folders of several sizes, and other engines."""
    use_one_thread()
    items, rounds = settings["items"], settings["rounds"]
    compared, avx2 = (
        in_new_process("benchmarks.search:compare_all", items, rounds, **environment)
        for environment in ({}, AVX2_ALONE)
    )
    for row, beside in zip(compared, avx2, strict=True):
        row |= {f"{asked}, with AVX2 alone": beside[f"{asked}, times as fast"] for asked in ASKED}
    conditions = [row for bits in CONDITIONS for row in beside_plain(bits, items_of(bits, items), rounds)]
    sizes = [settings[name] for name in ("items", "large", "huge") if settings[name]]
    folders = [measure_in_new_process(size, settings["changes"]) for size in sizes]
    with tempfile.TemporaryDirectory() as folder:
        engines = measure_engines(settings["engine_items"], settings["queries"], Path(folder))
    tables = {"compared": compared, "conditions": conditions, "folders": folders, "engines": engines}
    return {"tables": tables}


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
