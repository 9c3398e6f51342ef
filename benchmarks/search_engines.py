"""The same questions to the index, to faiss and usearch, to PostgreSQL and Milvus, which must agree."""

import time
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.codes import rows_of_width
from benchmarks.index_folders import CODE_LENGTH, NEIGHBOURS, codes_of, seconds_of
from deephash_pipeline.engines import export_index
from deephash_pipeline.engines.exported import ExportedIndex
from deephash_pipeline.engines.milvus import MilvusIndex
from deephash_pipeline.engines.postgres import PostgresIndex
from deephash_pipeline.hamming import Answers, HammingIndex
from tests.engines import servers

# faiss compares codes of 8 bytes faster than those of 6.
WIDTH = 8
SINGLE_QUERIES = 10
# usearch has room for the distances of all items from all queries that it is asked at once.
QUERIES_AT_ONCE = 16
Codes = NDArray[np.uint8]


class FaissIndex:
    """faiss's flat index: its order of items as near is another."""

    def __init__(self, codes: Codes) -> None:
        self.flat = import_module("faiss").IndexBinaryFlat(8 * WIDTH)
        self.flat.add(rows_of_width(codes, WIDTH))

    def search(self, codes: Codes, k: int) -> Answers:
        """Find the k nearest."""
        distances, rows = self.flat.search(rows_of_width(codes, WIDTH), k)
        return Answers(rows, distances)


class UsearchArray:
    """usearch's exact search of an array, which is faster than exact search of its index."""

    def __init__(self, codes: Codes, width: int = WIDTH) -> None:
        self.width, self.codes = width, rows_of_width(codes, width)
        self.usearch = import_module("usearch.index")

    def search(self, codes: Codes, k: int) -> Answers:
        """Find the k nearest."""
        queries, found = rows_of_width(codes, self.width), []
        for first in range(0, len(queries), QUERIES_AT_ONCE):
            some, hamming = queries[first : first + QUERIES_AT_ONCE], self.usearch.MetricKind.Hamming
            found.append(self.usearch.search(self.codes, some, k, hamming, exact=True, threads=1))
        rows, distances = (
            np.concatenate([np.reshape(getattr(part, name), (-1, k)) for part in found])
            for name in ("keys", "distances")
        )
        return Answers(rows, distances.astype(np.int32))


def measure_engines(items: int, queries: int, folder: Path) -> list[dict[str, str]]:
    """Ask the same of each engine: the time of one query and of many, and how many answers are those of the index."""
    codes, asked = codes_of(items, 1), codes_of(queries, 2)
    (folder / "milvus").mkdir()
    whole, found = HammingIndex(CODE_LENGTH), []
    whole.add([f"item {row}" for row in range(items)], codes)
    with ExitStack() as stack:
        postgres = stack.enter_context(servers.postgres(folder / "postgres"))
        milvus = stack.enter_context(servers.milvus(folder / "milvus"))
        engines: dict[str, Any] = {"HammingIndex": whole, "faiss, flat": FaissIndex(codes)}
        engines |= {"usearch, exact": UsearchArray(codes), "PostgreSQL, pgvector": PostgresIndex(postgres, "codes")}
        engines |= {"Milvus Lite": MilvusIndex(milvus, "codes")}
        expected = whole.search(asked, NEIGHBOURS)
        for name, engine in engines.items():
            load = seconds_of(partial(export_index, whole, engine)) if isinstance(engine, ExportedIndex) else 0.0
            started = time.perf_counter()
            answers = engine.search(asked, NEIGHBOURS)
            batch = time.perf_counter() - started
            single = [seconds_of(partial(engine.search, asked[[row]], NEIGHBOURS)) for row in range(SINGLE_QUERIES)]
            same = answers.distances == expected.distances
            if not isinstance(engine, FaissIndex | UsearchArray):
                same &= answers.ids == expected.ids
            found.append(
                {
                    "engine": name,
                    "codes": f"{items:,}",
                    "written, s": f"{load:.0f}",
                    "ms, one query": f"{1000 * np.median(single):.1f}",
                    "ms a query, batch": f"{1000 * batch / queries:.2f}",
                    "queries": f"{queries:,}",
                    "answered alike": f"{same.all(1).sum():,}",
                }
            )
        return found
