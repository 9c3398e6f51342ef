"""What the hash functions on z take, and what options change: `python -m benchmarks.studies.shallow_baselines`.

Fits every method of `HASH_FUNCTIONS` at all code lengths on the features of a benchmark that has been run up to
`feature_extraction`, with its configuration and seeds, and then the variants: KSH with more and fewer labels, and BRE
that rebuilds distances of features. Metrics are those of the pipeline's own evaluation.
"""

import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.documents import PROJECT, Benchmark, Results, Rows, Settings
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

    return {
        "method": method,
        "code_length": code_length,
        "changes": changes,
        "fit_seconds": fitted - began,
        "encode_seconds": encoded - fitted,
        "mean_average_precision": mean_average_precision("query"),
        "validation_mean_average_precision": mean_average_precision("validation"),
    }


def measure(settings: Settings) -> Results:
    """Measure all methods at all code lengths, and the variants."""
    cells = [(method, length, {}) for method in HASH_FUNCTIONS for length in CODE_LENGTHS]
    variants = [(method, length, changes) for method, changes in VARIANTS for length in VARIANT_CODE_LENGTHS]
    with finished_run(settings["environment"]) as catalog:
        return {
            "database": len(catalog.load("training_z")),
            "rows": [measure_cell(catalog, *cell) for cell in track(cells, "methods", len(cells))],
            "variants": [measure_cell(catalog, *cell) for cell in track(variants, "variants", len(variants))],
        }


def tables(results: Results) -> dict[str, Rows]:
    """Rows of the tables: seconds to fit and to encode the database, and mAP of the variants."""
    return {"times": _times(results["rows"]), "variants": _variants(results["variants"])}


def _times(rows: list[dict[str, Any]]) -> Iterator[dict[str, str]]:
    for method in dict.fromkeys(row["method"] for row in rows):
        of_method = (row for row in rows if row["method"] == method)
        times = {
            str(row["code_length"]): f"{row['fit_seconds']:.1f} + {row['encode_seconds']:.2f}" for row in of_method
        }
        yield {"method": METHODS[method], **times}


def _variants(rows: list[dict[str, Any]]) -> Iterator[dict[str, str]]:
    variants: dict[tuple[str, str, Any], list[dict[str, Any]]] = {}
    for row in rows:
        ((name, value),) = row["changes"].items()
        variants.setdefault((row["method"], name, value), []).append(row)
    for (method, name, value), of_variant in variants.items():
        yield {
            "method": METHODS[method],
            "parameter": f"`{name}: {str(value).lower()}`",
            **{f"mAP, {row['code_length']}": f"{row['mean_average_precision']:.4f}" for row in of_variant},
            **{f"fit, s, {row['code_length']}": f"{row['fit_seconds']:.1f}" for row in of_variant},
        }


SHALLOW_BASELINES = Benchmark(
    "shallow_baselines",
    measure,
    tables,
    settings={"environment": "mnist"},
    document=PROJECT / "docs" / "results" / "mnist.md",
)

if __name__ == "__main__":
    sys.exit(SHALLOW_BASELINES.main(__doc__))
