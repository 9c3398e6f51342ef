"""What approximate search misses: `python -m benchmarks.studies.nearer_items`.

All MNIST images are encoded by the hasher that comes with the package, so that no run is needed; the training images
are searched by test images.
"""

import sys
from functools import reduce
from importlib import import_module
from operator import or_
from pathlib import Path

from benchmarks import measuring
from benchmarks.documents import PROJECT, Benchmark, Results, Settings
from benchmarks.studies.approximate_search import Database, found, measure_database, named
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
    splits = read_source(parse_source({"kind": "idx"}), Path(settings["images"])).splits
    database, queries = (hasher.encode(splits[name].images) for name in ("training", "query"))
    measuring.use_one_thread()
    import_module("faiss").omp_set_num_threads(1)
    searched = Database(settings["hasher"], hasher.code_length, database, queries)
    measured = measure_database(searched, settings, INDEXES)
    sizes = "{items:,} codes, {distinct_codes:,} of them distinct; {queries:,} queries.".format(**measured)
    rows = [
        reduce(or_, (found(*of_k) for of_k in entry["neighbours"].items()), named(entry))
        for entry in measured["indexes"]
    ]
    return {"tables": {"codes": sizes, "found": rows}}


NEARER_ITEMS = Benchmark(
    "nearer_items",
    _measure,
    settings={"hasher": "mnist-48", "images": "data/01_raw/mnist", "neighbours": (10, 100), "queries": 1000}
    | {"slow_pairs": 100_000_000, "rounds": 1, "seconds_of_a_measurement": 0.001},
    distributions=("numpy", "faiss-cpu", "torch"),
    document=PROJECT / "docs" / "results" / "approximate-search.md",
)

if __name__ == "__main__":
    sys.exit(NEARER_ITEMS.main(__doc__))
