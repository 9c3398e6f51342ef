"""Codes of embeddings, with and without rescoring: `python -m benchmarks.studies.embeddings --features FILE.npy`.

Rows held out search the others: recall of the exact cosine's nearest by every hash function of vectors, alone and with
int8 vectors that bring candidates into order, beside indexes of faiss and usearch. Times are CPU milliseconds of one
query at a time on one thread, without encoding.
"""

import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import measuring
from benchmarks.documents import PROJECT, Benchmark, Results, Settings, three_digits
from deephash_pipeline.embeddings import open_vectors
from deephash_pipeline.embeddings.unit import unit_rows
from deephash_pipeline.hamming import ByFeatures, HammingIndex
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.retrieval import pack_bits

COUNTS = (10, 100)
OVERSAMPLING = {10: (4, 10), 100: (10,)}
MOST = 10
TIMED = 200
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
LONGEST = {"itq": 512}
FIXED = ("sign", "median")

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


def recall(found: Rows, truth: Rows) -> float:
    """Share of the true neighbours that were found."""
    return float(np.mean([len(np.intersect1d(*rows)) / len(rows[1]) for rows in zip(found, truth, strict=True)]))


def milliseconds(search: Callable[[int], Any]) -> float:
    """CPU time of a search, the median of three rounds."""
    search(0)
    rounds = []
    for _ in range(3):
        began = time.process_time()
        for query in range(TIMED):
            search(query)
        rounds.append(1000 * (time.process_time() - began) / TIMED)
    return float(np.median(rounds))


def measured_codes(method: str, bits: int, database: Floats, queries: Floats, truth: Rows) -> dict[str, str]:
    """A row of the table of codes."""
    function = HASH_FUNCTIONS[method](bits, random_state=0).fit(database)
    index = HammingIndex(bits, database.shape[1], "int8")
    index.add(np.arange(len(database)), pack_bits(function.transform(database)), features=database)
    codes = pack_bits(function.transform(queries))
    rows, scores = index.candidates(codes, COUNTS[-1] * MOST, ByFeatures(queries))
    row = {"method": f"`{method}`", "bits": f"{bits:,}", "bytes": f"{codes.shape[1]}"}
    for count in COUNTS:
        row[f"@{count}, alone"] = f"{recall(rows[:, :count], truth[:, :count]):.3f}"
        for factor in OVERSAMPLING[count]:
            order = np.argsort(scores[:, : factor * count], axis=1, kind="stable")[:, :count]
            found = np.take_along_axis(rows, order, axis=1)
            row[f"@{count}, {factor} x"] = f"{recall(found, truth[:, :count]):.3f}"
    shortlist = MOST * COUNTS[0]
    one = [slice(query, query + 1) for query in range(TIMED)]
    row["ms"] = three_digits(milliseconds(lambda query: index.search(codes[one[query]], COUNTS[0])))
    row[f"ms, {MOST} x"] = three_digits(
        milliseconds(
            lambda query: index.search(codes[one[query]], COUNTS[0], None, ByFeatures(queries[one[query]], shortlist))
        )
    )
    return row


def measured_others(database: Floats, queries: Floats, truth: Rows) -> list[dict[str, str]]:
    """Rows of the table of faiss's and usearch's indexes of vectors."""
    import faiss  # noqa: PLC0415 - the document is shown without it
    import usearch.index  # noqa: PLC0415

    faiss.omp_set_num_threads(1)
    width = database.shape[1]
    hnsw = faiss.IndexHNSWFlat(width, 32, faiss.METRIC_INNER_PRODUCT)
    hnsw.hnsw.efSearch = 100
    inverted = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, 64, faiss.METRIC_INNER_PRODUCT)
    inverted.nprobe = 8
    quantised = faiss.IndexRefineFlat(faiss.IndexPQ(width, 64, 8, faiss.METRIC_INNER_PRODUCT))
    quantised.k_factor = MOST

    class Usearch:
        """usearch's graph with the calls of faiss."""

        def __init__(self, kind: str) -> None:
            form = {"dtype": kind, "connectivity": 32, "expansion_search": 100}
            self.index = usearch.index.Index(ndim=width, metric="cos", **form)

        def train(self, database: Floats) -> None:
            """It learns nothing."""

        def add(self, database: Floats) -> None:
            """See faiss."""
            self.index.add(np.arange(len(database)), database, threads=1)

        def search(self, queries: Floats, count: int) -> tuple[Any, Rows]:
            """See faiss."""
            found = self.index.search(queries, count, threads=1)
            return found.distances, found.keys.astype(np.int64).reshape(len(queries), -1)

    rows = []
    for name, index, size in (
        ("faiss flat", faiss.IndexFlatIP(width), 4 * width),
        ("faiss IVF, 64 lists, 8 searched", inverted, 4 * width + 8),
        ("faiss HNSW, 32 links, efSearch 100", hnsw, 4 * width + 4 * 64),
        ("faiss PQ of 64 bytes, 10 x refined by floats", quantised, 4 * width + 64),
        ("usearch, 32 links, 100 expanded, float32", Usearch("f32"), 4 * width + 4 * 64),
        ("usearch, 32 links, 100 expanded, int8", Usearch("i8"), width + 4 * 64),
    ):
        index.train(database)
        index.add(database)
        row = {"index": name, "bytes": f"{size:,}"}
        for count in COUNTS:
            row[f"recall@{count}"] = f"{recall(index.search(queries, count)[1], truth[:, :count]):.3f}"
        taken = milliseconds(lambda query, index=index: index.search(queries[query : query + 1], COUNTS[0]))
        rows.append({**row, "ms": three_digits(taken)})
    return rows


def _measure(settings: Settings) -> Results:
    measuring.use_one_thread()
    source = open_vectors(settings["features"])
    everything = unit_rows(source.take(np.arange(source.count)), source.name, np.arange(source.count))
    asked = np.zeros(source.count, dtype=np.bool_)
    asked[np.random.default_rng(0).choice(source.count, settings["queries"], replace=False)] = True
    database, queries = everything[~asked], everything[asked]
    truth = np.argsort(-(queries @ database.T), axis=1, kind="stable")[:, : COUNTS[-1]]
    cells = [(method, source.width) for method in FIXED]
    cells += [
        (method, bits)
        for method, bits in product(("pca_rotation", "itq", "rotation"), LENGTHS)
        if bits <= LONGEST.get(method, LENGTHS[-1]) and (method == "rotation" or bits <= source.width)
    ]
    tables: dict[str, Any] = {
        "codes": [measured_codes(method, bits, database, queries, truth) for method, bits in cells]
    }
    tables["others"] = measured_others(database, queries, truth)
    tables["data"] = (
        f"{len(database):,} vectors of {source.width:,} numbers are searched by {len(queries):,} others; int8 vectors "
        f"take {source.width + 4:,} bytes each."
    )
    # Where the features lie is no part of what was measured.
    return {"tables": tables, "settings": {"queries": settings["queries"]}}


EMBEDDINGS = Benchmark(
    "embeddings",
    _measure,
    settings={"features": str(Path("features.npy")), "queries": 800},
    quick={"queries": 200},
    distributions=("numpy", "numba", "faiss-cpu", "usearch"),
    document=PROJECT / "docs" / "embeddings.md",
)

if __name__ == "__main__":
    sys.exit(EMBEDDINGS.main(__doc__))
