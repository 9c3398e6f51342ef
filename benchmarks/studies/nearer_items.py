"""What approximate search misses: `python -m benchmarks.studies.nearer_items`.

All MNIST images are encoded by the hasher that comes with the package, so that no run is needed; the training images
are searched by test images.
"""

import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import measuring
from benchmarks.documents import PROJECT, Benchmark, Results, Rows, Settings
from benchmarks.studies.approximate_search import Database, measure_database
from benchmarks.studies.search_indexes import FLAT, HNSW, HNSW_MERGED, IVF, Setting
from deephash_pipeline import ImageHasher
from deephash_pipeline.images.sources.registry import parse_source, read_source

INDEXES = (
    Setting(FLAT),
    Setting(IVF, {"nlist": 256}, ({"nprobe": 1}, {"nprobe": 4}, {"nprobe": 16})),
    Setting(HNSW, {"M": 32}, ({"efSearch": 16}, {"efSearch": 64}, {"efSearch": 256})),
    Setting(HNSW_MERGED, {"M": 16}, ({"efSearch": 16}, {"efSearch": 64})),
)


def _measure(settings: Settings) -> Results:
    measuring.require_packages(["faiss"])
    hasher = ImageHasher.pretrained(settings["hasher"], device="cpu")
    with TemporaryDirectory() as folder:
        splits = read_source(parse_source({"kind": "idx"}), Path(settings["images"]), Path(folder)).splits
        database, queries = (hasher.encode(splits[name].images) for name in ("training", "query"))
    measuring.use_one_thread()
    import_module("faiss").omp_set_num_threads(1)
    searched = Database(settings["hasher"], hasher.code_length, database, queries)
    return {"database": measure_database(searched, settings, INDEXES)}


def tables(results: Results) -> dict[str, Rows | str]:
    """Rows of the table: an index and setting each, and what it finds of the ten and of the hundred nearest."""
    database = results["database"]
    sizes = "{items:,} codes, {distinct_codes:,} of them distinct; {queries:,} queries.".format(**database)
    return {"codes": sizes, "found": [_row(entry) for entry in database["indexes"]]}


def _row(entry: dict[str, Any]) -> dict[str, str]:
    setting = ", ".join(f"{name} {value}" for name, value in {**entry["build"], **entry["search"]}.items())
    row = {"index": entry["family"], "setting": setting}
    for k, measured in entry["neighbours"].items():
        nearer = measured["strictly_nearer_found"]
        row |= {
            f"recall@{k}": f"{measured['recall']:.4f}",
            f"strictly nearer found@{k}": "" if nearer is None else f"{nearer:.4f}",
        }
    return row


NEARER_ITEMS = Benchmark(
    "nearer_items",
    _measure,
    tables,
    settings={"hasher": "mnist-48", "images": "data/01_raw/mnist", "neighbours": (10, 100), "queries": 1000}
    | {"slow_pairs": 100_000_000, "rounds": 1, "seconds_of_a_measurement": 0.001},
    distributions=("numpy", "faiss-cpu", "torch"),
    document=PROJECT / "docs" / "results" / "approximate-search.md",
)

if __name__ == "__main__":
    sys.exit(NEARER_ITEMS.main(__doc__))
