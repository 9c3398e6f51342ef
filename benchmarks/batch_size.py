"""Do larger batches, and so more pairs, raise mAP? `python -m benchmarks.batch_size --env=cifar10`.

Fine-tunes one cell from the same pre-training with batches of several sizes, all on the same number of images, and
measures each. What is interrupted goes on where it was; finished sizes are not trained again.
"""

import argparse
from pathlib import Path
from typing import Any

from kedro.framework.session import KedroSession
from kedro.framework.startup import bootstrap_project

from benchmarks.documents import (
    PROJECT,
    RESULTS,
    markdown_table,
    read_results,
    write_results,
    write_section,
)
from benchmarks.measuring import describe_machine
from deephash_pipeline.methods import Cell
from deephash_pipeline.pipelines.evaluation.nodes import count_query_distances, measure_retrieval
from deephash_pipeline.pipelines.fine_tuning.nodes import FineTuningParameters, encode_images, fine_tune
from deephash_pipeline.training import CheckpointFolder

SECTION = "batch-size"
BATCH_SIZES = (100, 600, 2000, 10_000)
METHOD = "deephash"
SECONDS_BETWEEN_CHECKPOINTS = 60


def parameters_for(
    batch_size: int, chunk_size: int, epochs: int, configured: FineTuningParameters
) -> FineTuningParameters:
    """Change the batch size; the learning rate grows with its square root, as the noise of a gradient falls."""
    training = configured.training
    rate = training.learning_rate * (batch_size / training.batch_size) ** 0.5
    changes = {
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": rate,
        "chunk_size": chunk_size if batch_size > chunk_size else None,
    }
    return configured.model_copy(update={"training": training.model_copy(update=changes)})


def measure(catalog: Any, batch_size: int, chunk_size: int, epochs: int, cell: Cell, folder: Path) -> dict[str, Any]:
    """Fine-tune and evaluate with one batch size."""
    experiment = catalog.load("params:experiment")
    parameters = parameters_for(batch_size, chunk_size, epochs, catalog.load(f"params:fine_tuning.{cell.method}"))
    held = {
        name: catalog.load(name) for name in ("training_images", "training_labels", "pixel_statistics", "trunk_weights")
    }
    weights, encoder, history = fine_tune(
        **held,
        initial_hash_layer=catalog.load(f"deephash_pretrained.b{cell.code_length}.hash_layer"),
        cell=cell,
        parameters=parameters,
        experiment=experiment,
        checkpoints=CheckpointFolder(folder / str(batch_size), SECONDS_BETWEEN_CHECKPOINTS),
    )
    sets = {name: catalog.load(f"{name}_images") for name in ("training", "validation", "query")}
    codes = encode_images(
        encoder, weights, sets["training"], sets["validation"], sets["query"], held["pixel_statistics"], experiment
    )
    labels = {name: catalog.load(f"{name}_labels") for name in sets}
    histograms = count_query_distances(codes, labels["query"], labels["training"])
    metrics, _ = measure_retrieval(histograms, codes, labels["query"], labels["validation"], labels["training"], cell)
    steps = len(labels["training"]) // batch_size * parameters.training.epochs
    return {
        "batch_size": batch_size,
        "learning_rate": parameters.training.learning_rate,
        "epochs": parameters.training.epochs,
        "steps": steps,
        "pairs_per_step": batch_size * (batch_size - 1) // 2,
        "true_loss": float(history["true_loss"].iloc[-1]),
        **{name: metrics[name] for name in ("mean_average_precision", "validation_mean_average_precision")},
    }


def table(results: dict[str, Any]) -> str:
    """Return what stands between the markers of the document."""
    rows = [
        [
            f"{row['batch_size']:,}",
            f"{row['pairs_per_step']:,}",
            f"{row['steps']:,}",
            f"{row['learning_rate']:.3f}",
            f"{row['true_loss']:.4f}",
            f"{row['validation_mean_average_precision']:.4f}",
            f"{row['mean_average_precision']:.4f}",
        ]
        for row in results["rows"]
    ]
    header = ["batch", "pairs in a step", "steps", "learning rate", "true loss", "validation mAP", "mAP"]
    note = (
        f"{results['benchmark']}, {results['code_length']} bits, {results['rows'][0]['epochs']} epochs, seed "
        f"{results['seed']}; {results['machine']['processor']}."
    )
    return f"{note}\n\n{markdown_table(header, rows)}"


def main() -> None:
    """Train what is missing, measure, and write results and table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="cifar10")
    parser.add_argument("--code-length", type=int, default=48)
    parser.add_argument("--chunk-size", type=int, default=600)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=BATCH_SIZES)
    arguments = parser.parse_args()
    bootstrap_project(PROJECT)
    with KedroSession.create(project_path=PROJECT, env=arguments.env) as session:
        catalog = session.load_context().catalog
        experiment = catalog.load("params:experiment")
        folder = PROJECT / "data" / "06_models" / experiment.benchmark / "batch_size"
        cell = Cell(method=METHOD, code_length=arguments.code_length)
        path = RESULTS / "batch_size.json"
        results: dict[str, Any] = {
            "benchmark": experiment.benchmark,
            "code_length": arguments.code_length,
            "seed": experiment.seed,
            "machine": describe_machine(),
            "rows": [],
        }
        if path.is_file():
            former = read_results(path)
            if [former[key] for key in ("benchmark", "code_length")] == [experiment.benchmark, arguments.code_length]:
                results["rows"] = [row for row in former["rows"] if row["batch_size"] not in arguments.batch_sizes]
        for batch_size in arguments.batch_sizes:
            results["rows"].append(measure(catalog, batch_size, arguments.chunk_size, arguments.epochs, cell, folder))
            results["rows"].sort(key=lambda row: int(row["batch_size"]))
            write_results(path, results)
            print(table(results), flush=True)
    write_section(SECTION, table(results))


if __name__ == "__main__":
    main()
