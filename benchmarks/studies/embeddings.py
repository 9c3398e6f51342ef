"""Codes of embeddings, with and without rescoring: `python -m benchmarks.studies.embeddings --features FILE.npy`.

Rows held out search the others: recall of the exact cosine's nearest by every hash function of vectors, alone and with
int8 vectors that bring candidates into order. `benchmarks.studies.vectors` has times, and indexes of others.
"""

import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import measuring
from benchmarks.documents import PROJECT, Benchmark, Results, Settings
from deephash_pipeline.embeddings import open_vectors
from deephash_pipeline.embeddings.unit import unit_rows
from deephash_pipeline.hamming import ByFeatures, HammingIndex
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.retrieval import pack_bits

COUNTS = (10, 100)
OVERSAMPLING = {10: (4, 10), 100: (10,)}
MOST = 10
LENGTHS = (64, 128, 256, 512, 1024)
LONGEST = {"itq": 512}
FIXED = ("sign", "median")

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


def recall(found: Rows, truth: Rows) -> float:
    """Share of the true neighbours that were found."""
    return float(np.mean([len(np.intersect1d(*rows)) / len(rows[1]) for rows in zip(found, truth, strict=True)]))


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
    return row


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
    distributions=("numpy", "numba"),
    document=PROJECT / "docs" / "embeddings.md",
)

if __name__ == "__main__":
    sys.exit(EMBEDDINGS.main(__doc__))
