"""What the hash functions on z take, and what options change: `python -m benchmarks.studies.shallow_baselines`.

Fits every method of `HASH_FUNCTIONS` at all code lengths on the features of a benchmark that has been run up to
`feature_extraction`, with its configuration and seeds, and then the variants: KSH with more and fewer labels, and BRE
that rebuilds distances of features. Metrics are those of the pipeline's own evaluation.
"""

import sys
import time
from typing import Any

import pandas as pd

from benchmarks.documents import PROJECT, Benchmark, Results, Settings
from benchmarks.studies.runs import finished_run
from deephash_pipeline.common.cell import Cell
from deephash_pipeline.common.progress import track
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.pipelines.grid import CODE_LENGTHS, METHODS
from deephash_pipeline.pipelines.shared.fitting import BaselineParameters, fit_hash_function
from deephash_pipeline.retrieval import count_distances, mean_average_precision, pack_bits

VARIANT_CODE_LENGTHS = (12, 24, 48)
VARIANTS = (
    *(("bre", {"supervised": value}) for value in (True, False)),
    *(("ksh", {"labelled_samples": count}) for count in (500, 1000, 2000, 5000, 10_000)),
)


def measure_cell(catalog: Any, method: str, code_length: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Fit on the training set, encode it and the queries: wall seconds of both, and mAP."""
    given = catalog.load("params:baseline_hashing").root
    parameters = BaselineParameters({**given, method: given[method] | changes})
    z, queries, labels, asked = map(catalog.load, ("training_z", "query_z", "training_labels", "query_labels"))
    cell = Cell(method=method, code_length=code_length)
    began = time.perf_counter()
    encoder = fit_hash_function(z, labels, cell, parameters, catalog.load("params:experiment").seed)
    fitted = time.perf_counter()
    database = pack_bits(encoder.transform(z))
    encoded = time.perf_counter()
    counts = count_distances(pack_bits(encoder.transform(queries)), asked, database, labels, code_length)
    return {
        "method": METHODS[method],
        "parameter": "".join(f"`{name}: {str(value).lower()}`" for name, value in changes.items()),
        "bits": str(code_length),
        "seconds": f"{fitted - began:.1f} + {encoded - fitted:.2f}",
        "mAP": f"{mean_average_precision(counts):.4f}",
        "fit, s": f"{fitted - began:.1f}",
    }


def _measure(settings: Settings) -> Results:
    cells = [(method, length, {}) for method in HASH_FUNCTIONS for length in CODE_LENGTHS]
    variants = [(method, length, changes) for method, changes in VARIANTS for length in VARIANT_CODE_LENGTHS]
    with finished_run(settings["environment"]) as catalog:
        every = track(cells + variants, "hash functions", len(cells + variants))
        rows = pd.DataFrame([measure_cell(catalog, *cell) for cell in every])
    of_default = rows["parameter"] == ""
    times = rows[of_default].set_index(["method", "bits"])["seconds"].unstack(sort=False)
    changed = rows[~of_default].set_index(["method", "parameter", "bits"])[["mAP", "fit, s"]].unstack(sort=False)
    changed.columns = [f"{what}, {bits}" for what, bits in changed.columns]
    tables = {"times": times, "variants": changed}
    return {"tables": {name: table.reset_index().to_dict("records") for name, table in tables.items()}}


SHALLOW_BASELINES = Benchmark(
    "shallow_baselines",
    _measure,
    settings={"environment": "mnist"},
    document=PROJECT / "docs" / "results" / "mnist.md",
)

if __name__ == "__main__":
    sys.exit(SHALLOW_BASELINES.main(__doc__))
