"""How long the hash functions on z take, and what their options change: `python -m benchmarks.shallow_baselines`.

Fits every method of `HASH_FUNCTIONS` at all code lengths on the features of a benchmark that has been run up to
`feature_extraction`, with its configuration and seeds, and then the variants: KSH with more and fewer labels, and BRE
that rebuilds distances of features. Figures are those of the pipeline's own evaluation.
"""

import argparse
import time
from typing import Any

from kedro.framework.session import KedroSession
from kedro.framework.startup import bootstrap_project

from benchmarks.documents import PROJECT, RESULTS, markdown_table, write_results, write_section
from benchmarks.measuring import describe_machine
from deephash_pipeline.grid import CODE_LENGTHS
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.randomness import derive_seed
from deephash_pipeline.retrieval import count_distances, pack_bits, retrieval_metrics

TIMES, VARIANTS = "times", "variants"
VARIANT_CODE_LENGTHS = (12, 24, 48)
LABELLED_SAMPLES = (500, 1000, 2000, 5000, 10_000)


def measure(catalog: Any, method: str, code_length: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Fit on the training set and encode it, the validation set and the queries; wall seconds and mAP of both."""
    parameters = catalog.load("params:baseline_hashing").root[method] | changes
    seed = derive_seed(catalog.load("params:experiment").seed, method)
    z = {name: catalog.load(f"{name}_z") for name in ("training", "validation", "query")}
    labels = {name: catalog.load(f"{name}_labels") for name in z}
    began = time.perf_counter()
    hash_function = HASH_FUNCTIONS[method](code_length, random_state=seed, **parameters)
    hash_function.fit(z["training"], labels["training"])
    fitted = time.perf_counter()
    codes = {"training": pack_bits(hash_function.transform(z["training"]))}
    encoded = time.perf_counter()
    figures = {}
    for name in ("validation", "query"):
        codes[name] = pack_bits(hash_function.transform(z[name]))
        histograms = count_distances(codes[name], labels[name], codes["training"], labels["training"], code_length)
        figures[name] = float(retrieval_metrics(histograms)["mean_average_precision"])
    return {
        "method": method,
        "code_length": code_length,
        "changes": changes,
        "fit_seconds": fitted - began,
        "encode_seconds": encoded - fitted,
        "mean_average_precision": figures["query"],
        "validation_mean_average_precision": figures["validation"],
    }


def times_table(results: dict[str, Any]) -> str:
    """Render seconds to fit and to encode the database, and all of it together."""
    rows = []
    for method, hash_function in HASH_FUNCTIONS.items():
        of_method = {row["code_length"]: row for row in results["rows"] if row["method"] == method}
        cells = (of_method[length] for length in CODE_LENGTHS)
        rows.append(
            [hash_function.display_name, *(f"{row['fit_seconds']:.1f} + {row['encode_seconds']:.2f}" for row in cells)]
        )
    together = sum(row["fit_seconds"] + row["encode_seconds"] for row in results["rows"])
    return "\n\n".join(
        [
            f"Seconds to fit and, behind the plus, to encode the {results['database']:,} images of the database, by "
            f"code length; {describe(results['machine'])}. Everything together: {together / 60:.1f} minutes.",
            markdown_table(["method", *map(str, CODE_LENGTHS)], rows),
        ]
    )


def describe(machine: dict[str, Any]) -> str:
    """Say on what it was measured."""
    return f"{machine['processor']}, {machine['cores']} cores, load {machine['load_average']} at the start"


def variants_table(results: dict[str, Any]) -> str:
    """Render mAP of the variants."""
    names = list(dict.fromkeys((row["method"], *row["changes"].items()) for row in results["variants"]))
    rows = []
    for method, change in names:
        found = {
            row["code_length"]: row
            for row in results["variants"]
            if row["method"] == method and tuple(row["changes"].items()) == (change,)
        }
        rows.append(
            [
                HASH_FUNCTIONS[method].display_name,
                f"`{change[0]}: {str(change[1]).lower()}`",
                *(f"{found[length]['mean_average_precision']:.4f}" for length in VARIANT_CODE_LENGTHS),
                *(f"{found[length]['fit_seconds']:.1f}" for length in VARIANT_CODE_LENGTHS),
            ]
        )
    header = [
        "method",
        "parameter",
        *(f"mAP, {length}" for length in VARIANT_CODE_LENGTHS),
        *(f"fit, s, {length}" for length in VARIANT_CODE_LENGTHS),
    ]
    return markdown_table(header, rows)


def main() -> None:
    """Measure everything and write results and tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--env", default="mnist")
    arguments = parser.parse_args()
    bootstrap_project(PROJECT)
    results: dict[str, Any] = {"machine": describe_machine(), "rows": [], "variants": []}
    with KedroSession.create(project_path=PROJECT, env=arguments.env) as session:
        catalog = session.load_context().catalog
        results["database"] = len(catalog.load("training_z"))
        for method in HASH_FUNCTIONS:
            for code_length in CODE_LENGTHS:
                results["rows"].append(measure(catalog, method, code_length, {}))
                print(results["rows"][-1], flush=True)
        changes: list[tuple[str, dict[str, Any]]] = [("bre", {"supervised": value}) for value in (True, False)]
        changes += [("ksh", {"labelled_samples": count}) for count in LABELLED_SAMPLES]
        for method, change in changes:
            for code_length in VARIANT_CODE_LENGTHS:
                results["variants"].append(measure(catalog, method, code_length, change))
                print(results["variants"][-1], flush=True)
    write_results(RESULTS / f"shallow_baselines_{arguments.env}.json", results)
    document = PROJECT / "docs" / "results" / f"{arguments.env}.md"
    for section, content in ((TIMES, times_table(results)), (VARIANTS, variants_table(results))):
        write_section(section, content, document)


if __name__ == "__main__":
    main()
