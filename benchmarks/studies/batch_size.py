"""Do larger batches, and so more pairs, raise mAP? `python -m benchmarks.studies.batch_size`.

Fine-tunes one cell from the same pre-training with batches of several sizes, all on the same number of images, and
measures each. What is interrupted goes on where it was; finished sizes are not trained again.
"""

import sys
from pathlib import Path
from typing import Any

from benchmarks.documents import PROJECT, Benchmark, Results, Settings, rows_by
from benchmarks.studies.runs import finished_run
from deephash_pipeline.deephash import FineTuningParameters, PreTrainedWeights, Run, TrainingSet, fine_tune
from deephash_pipeline.methods import Cell
from deephash_pipeline.retrieval import count_distances, mean_average_precision
from deephash_pipeline.training import CheckpointFolder

METHOD, SECONDS_BETWEEN_CHECKPOINTS = "deephash", 60


def parameters_for(batch_size: int, settings: Settings, configured: FineTuningParameters) -> FineTuningParameters:
    """Change the batch size; the learning rate grows with its square root, as the noise of a gradient falls."""
    training = configured.training
    changes = {
        "epochs": settings["epochs"],
        "batch_size": batch_size,
        "learning_rate": training.learning_rate * (batch_size / training.batch_size) ** 0.5,
        "chunk_size": settings["chunk_size"] if batch_size > settings["chunk_size"] else None,
    }
    return configured.model_copy(update={"training": training.model_copy(update=changes)})


def measure_size(catalog: Any, batch_size: int, settings: Settings, folder: Path) -> dict[str, Any]:
    """Fine-tune and evaluate with one batch size."""
    code_length = settings["code_length"]
    parameters = parameters_for(batch_size, settings, catalog.load(f"params:fine_tuning.{METHOD}"))
    training_set = TrainingSet(
        *map(catalog.load, ("training_images", "training_labels", "pixel_statistics", "class_names"))
    )
    run = Run(
        catalog.load("params:experiment"),
        Cell(method=METHOD, code_length=code_length),
        CheckpointFolder(folder / str(batch_size), SECONDS_BETWEEN_CHECKPOINTS),
    )
    start = PreTrainedWeights(
        catalog.load("trunk_weights"), catalog.load(f"deephash_pretrained.b{code_length}.hash_layer")
    )
    hasher, history = fine_tune(training_set, parameters, run, start)
    database, training = hasher.encode(training_set.images), training_set.labels

    def score(name: str) -> float:
        codes, labels = hasher.encode(catalog.load(f"{name}_images")), catalog.load(f"{name}_labels")
        return mean_average_precision(count_distances(codes, labels, database, training, code_length))

    epochs, rate = parameters.training.epochs, parameters.training.learning_rate
    size = {"batch_size": batch_size, "learning_rate": rate, "epochs": epochs}
    return {
        **size,
        "steps": len(training) // batch_size * epochs,
        "pairs_per_step": batch_size * (batch_size - 1) // 2,
        "true_loss": float(history["true_loss"].iloc[-1]),
        "mean_average_precision": score("query"),
        "validation_mean_average_precision": score("validation"),
    }


def _measure(settings: Settings) -> Results:
    with finished_run(settings["environment"]) as catalog:
        experiment = catalog.load("params:experiment")
        folder = PROJECT / "data" / "06_models" / experiment.benchmark / "batch_size"
        rows = [measure_size(catalog, batch_size, settings, folder) for batch_size in settings["batch_sizes"]]
    return {"benchmark": experiment.benchmark, "seed": experiment.seed, "rows": rows}


SIZES = (
    "batch: {batch_size:,} | pairs in a step: {pairs_per_step:,} | steps: {steps:,} | learning rate: "
    "{learning_rate:.3f} | true loss: {true_loss:.4f} | validation mAP: {validation_mean_average_precision:.4f} | "
    "mAP: {mean_average_precision:.4f}"
)
BATCH_SIZE = Benchmark(
    "batch_size",
    _measure,
    lambda results: {"sizes": rows_by(SIZES, results["rows"])},
    settings={"environment": "cifar10", "code_length": 48, "epochs": 6, "chunk_size": 600}
    | {"batch_sizes": (100, 600, 2000, 10_000)},
    quick={"batch_sizes": (100,), "epochs": 1},
)

if __name__ == "__main__":
    sys.exit(BATCH_SIZE.main(__doc__))
