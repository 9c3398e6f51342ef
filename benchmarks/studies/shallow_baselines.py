"""What the hash functions on z take, and what options change: `python -m benchmarks.studies.shallow_baselines`.

Fits every method of `HASH_FUNCTIONS` at all code lengths on the features of a benchmark that has been run up to
`feature_extraction`, with its configuration and seeds, and then the variants: KSH with more and fewer labels, and BRE
that rebuilds distances of features. Metrics are those of the pipeline's own evaluation.
"""

import sys
import time
from typing import Any

from benchmarks.documents import PROJECT, Benchmark, Results, Settings
from benchmarks.studies.runs import finished_run
from deephash_pipeline.grid import CODE_LENGTHS, METHODS
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.pipelines.shared.fitting import seed_of_fit
from deephash_pipeline.progress import track
from deephash_pipeline.retrieval import count_distances, pack_bits, retrieval_metrics

VARIANT_CODE_LENGTHS = (12, 24, 48)
VARIANTS = (
    *(("bre", {"supervised": value}) for value in (True, False)),
    *(("ksh", {"labelled_samples": count}) for count in (500, 1000, 2000, 5000, 10_000)),
)


def measure_cell(catalog: Any, method: str, code_length: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Fit on the training set and encode it, the validation set and the queries; wall seconds and mAP of both."""
    parameters = catalog.load("params:baseline_hashing").root[method] | changes
    seed = seed_of_fit(catalog.load("params:experiment"), method)
    z = {name: catalog.load(f"{name}_z") for name in ("training", "validation", "query")}
    labels = {name: catalog.load(f"{name}_labels") for name in z}
    began = time.perf_counter()
    hash_function = HASH_FUNCTIONS[method](code_length, random_state=seed, **parameters)
    hash_function.fit(z["training"], labels["training"])
    fitted = time.perf_counter()
    database = pack_bits(hash_function.transform(z["training"]))
    encoded = time.perf_counter()

    def mean_average_precision(name: str) -> float:
        codes = pack_bits(hash_function.transform(z[name]))
        histograms = count_distances(codes, labels[name], database, labels["training"], code_length)
        return float(retrieval_metrics(histograms)["mean_average_precision"])

    named = {"method": method, "code_length": code_length, "changes": changes}
    return {
        **named,
        "fit_seconds": fitted - began,
        "encode_seconds": encoded - fitted,
        "mean_average_precision": mean_average_precision("query"),
        "validation_mean_average_precision": mean_average_precision("validation"),
    }


def _measure(settings: Settings) -> Results:
    cells = [(method, length, {}) for method in HASH_FUNCTIONS for length in CODE_LENGTHS]
    variants = [(method, length, changes) for method, changes in VARIANTS for length in VARIANT_CODE_LENGTHS]
    with finished_run(settings["environment"]) as catalog:
        rows = [
            measure_cell(catalog, *cell) for cell in track(cells + variants, "hash functions", len(cells + variants))
        ]
    times: dict[str, dict[str, str]] = {}
    for row in rows[: len(cells)]:
        seconds = f"{row['fit_seconds']:.1f} + {row['encode_seconds']:.2f}"
        times.setdefault(row["method"], {"method": METHODS[row["method"]]})[str(row["code_length"])] = seconds
    variants: dict[tuple[str, str], dict[str, str]] = {}
    for template in ("mAP, {code_length}: {mean_average_precision:.4f}", "fit, s, {code_length}: {fit_seconds:.1f}"):
        for row in rows[len(cells) :]:
            ((option, value),) = row["changes"].items()
            method, parameter = METHODS[row["method"]], f"`{option}: {str(value).lower()}`"
            name, _, cell = template.format(**row).partition(": ")
            variants.setdefault((method, parameter), {"method": method, "parameter": parameter})[name] = cell
    return {"tables": {"times": list(times.values()), "variants": list(variants.values())}}


SHALLOW_BASELINES = Benchmark(
    "shallow_baselines",
    _measure,
    settings={"environment": "mnist"},
    document=PROJECT / "docs" / "results" / "mnist.md",
)

if __name__ == "__main__":
    sys.exit(SHALLOW_BASELINES.main(__doc__))
