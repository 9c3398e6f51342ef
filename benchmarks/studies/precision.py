"""What bfloat16 gains and what it costs: `python -m benchmarks.studies.precision`.

Without arguments: images a second of forward and backward pass of the paper's three networks, float32 and bfloat16 in
turn, CPU time of one thread. With `mnist RAW FOLDER`, where RAW has the benchmark's raw images: validation mAP at 48
bits after pre-training and fine-tuning in either precision, from several seeds. What is interrupted goes on where it
was, and what is finished is not trained again.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import torch
from kedro.framework.session import KedroSession
from kedro.framework.startup import bootstrap_project

from benchmarks.documents import PROJECT, markdown_table, rows_by, write_text
from benchmarks.measuring import Method, calls_lasting, interleaved, use_one_thread
from deephash_pipeline.datasets import ImageSourceDataset
from deephash_pipeline.deephash import PreTrainedWeights, Run, TrainingSet, fine_tune
from deephash_pipeline.deephash.experiment import ClassifierRun, Experiment
from deephash_pipeline.deephash.initialise import initialise_hash_layer
from deephash_pipeline.deephash.pretrain import extract_features, pretrain
from deephash_pipeline.deephash.training_set import LabelledFeatures, LabelledImages
from deephash_pipeline.images.statistics import pixel_statistics
from deephash_pipeline.methods import Cell
from deephash_pipeline.networks import build_trunk, initialise
from deephash_pipeline.pipelines.data_ingestion.nodes import split_images
from deephash_pipeline.retrieval import count_distances, mean_average_precision
from deephash_pipeline.training import CheckpointFolder

NETWORKS = ("lenet", "cifar10_full", "kaggle_face")
PRECISIONS = ("float32", "bfloat16")
METHOD, CODE_LENGTH = "deephash", 48
BATCH, ROUNDS, SECONDS_OF_A_ROUND = 128, 9, 1.0
SECONDS_BETWEEN_CHECKPOINTS = 30


def forward_and_backward(network: str, precision: str) -> Callable[[], None]:
    """Make a function that does both passes of one batch, as training does them."""
    trunk = build_trunk(network).train().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    initialise(trunk, seed=1)
    images = torch.rand(BATCH, *trunk.image_shape).contiguous(memory_format=torch.channels_last)

    def passes() -> None:
        trunk.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            z = trunk(images)
        z.float().sum().backward()

    return passes


def rates() -> list[dict[str, Any]]:
    """Measure images a CPU second."""
    use_one_thread()
    rows = []
    for network in NETWORKS:
        passes = {precision: forward_and_backward(network, precision) for precision in PRECISIONS}
        calls = calls_lasting(passes["float32"], SECONDS_OF_A_ROUND)
        timings = interleaved([Method(name, run, calls) for name, run in passes.items()], ROUNDS)
        row = {name: BATCH / timings[name].cpu_seconds for name in PRECISIONS}
        rows.append({"network": network, **row, "ratio": row["bfloat16"] / row["float32"]})
    return rows


class Images(NamedTuple):
    """What all trainings have in common."""

    training: TrainingSet
    validation: LabelledImages
    parameters: dict[str, Any]


def read_images(environment: str, raw: Path, folder: Path) -> Images:
    """Split the raw images as the benchmark's configuration says, and read its parameters."""
    bootstrap_project(PROJECT)
    names = ("experiment", "protocol", "data_ingestion", "cnn_pretraining", "hash_layer_init", f"fine_tuning.{METHOD}")
    with KedroSession.create(PROJECT, env=environment) as session:
        context = session.load_context()
        parameters = {name: context.catalog.load(f"params:{name}") for name in names}
        source = context.config_loader["catalog"]["raw_images"]["source"]
    experiment = parameters["experiment"]
    collection = ImageSourceDataset(str(raw), source, str(folder / "decoded")).load()
    made = split_images(
        collection, parameters["data_ingestion"], parameters["protocol"], experiment.seed, experiment.benchmark
    )
    training, labels = made["training_images"], made["training_labels"]
    return Images(
        TrainingSet(training, labels, pixel_statistics(training), made["class_names"]),
        LabelledImages(made["validation_images"], made["validation_labels"]),
        parameters,
    )


def trained_in(stage: Any, precision: str) -> Any:
    """Change the precision of a stage's training."""
    return stage.model_copy(update={"training": stage.training.model_copy(update={"precision": precision})})


def validation_map(images: Images, seed: int, precision: str, folder: Path) -> float:
    """Pre-train, fine-tune and search for the validation images among the training images."""
    training_set, validation, parameters = images
    experiment: Experiment = parameters["experiment"].model_copy(update={"seed": seed, "device": "cpu"})

    def checkpoints(stage: str) -> CheckpointFolder:
        return CheckpointFolder(folder / stage, SECONDS_BETWEEN_CHECKPOINTS)

    classifier = ClassifierRun(experiment, checkpoints("pretraining"))
    start = pretrain(training_set, validation, trained_in(parameters["cnn_pretraining"], precision), classifier)
    z = extract_features(training_set.images, training_set.statistics, start.trunk, experiment)
    features = LabelledFeatures(z, training_set.labels, training_set.class_names)
    cell = Cell(method=METHOD, code_length=CODE_LENGTH)
    initialised = initialise_hash_layer(
        features, parameters["hash_layer_init"], Run(experiment, cell, checkpoints("hash_layer"))
    )
    hasher, _ = fine_tune(
        training_set,
        trained_in(parameters[f"fine_tuning.{METHOD}"], precision),
        Run(experiment, cell, checkpoints("fine_tuning")),
        PreTrainedWeights(start.trunk, initialised.weights),
    )
    codes, database = hasher.encode(validation.images), hasher.encode(training_set.images)
    counts = count_distances(codes, validation.labels, database, training_set.labels, CODE_LENGTH)
    return float(mean_average_precision(counts))


def after_training(environment: str, raw: Path, folder: Path, seeds: list[int]) -> list[dict[str, Any]]:
    """Measure validation mAP in both precisions from every seed."""
    torch.set_num_threads(1)
    results = folder / f"{environment}.json"
    scores: dict[str, float] = json.loads(results.read_text()) if results.exists() else {}
    wanted = [(seed, precision) for seed in seeds for precision in PRECISIONS]
    missing = [each for each in wanted if f"{each[1]} {each[0]}" not in scores]
    images = read_images(environment, raw, folder) if missing else None
    for seed, precision in missing:
        assert images is not None, "it was read for what is missing"
        place = folder / environment / precision / str(seed)
        scores[f"{precision} {seed}"] = validation_map(images, seed, precision, place)
        write_text(results, json.dumps(scores, indent=1))
    rows = [{"seed": seed, **{name: scores[f"{name} {seed}"] for name in PRECISIONS}} for seed in seeds]
    differences = [row["bfloat16"] - row["float32"] for row in rows]
    spread = stdev(differences) if len(differences) > 1 else float("nan")
    print(f"difference: mean {mean(differences):+.5f}, standard deviation {spread:.5f}")
    return rows


def main() -> None:
    """Measure one of both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", nargs="?", help="such as mnist")
    parser.add_argument("raw", nargs="?", type=Path, help="folder of its raw images")
    parser.add_argument("folder", nargs="?", type=Path, help="where checkpoints and results are kept")
    parser.add_argument("--seeds", nargs="+", type=int, default=[42, 43, 44])
    given = parser.parse_args()
    if given.environment is None:
        template = "network: {network} | float32: {float32:,.0f} | bfloat16: {bfloat16:,.0f} | times: {ratio:.2f}"
        print(markdown_table(rows_by(template, rates())))
        return
    if given.folder is None:
        parser.error("name the environment, the folder of its raw images, and one for checkpoints and results")
    given.folder.mkdir(parents=True, exist_ok=True)
    rows = after_training(given.environment, given.raw.resolve(), given.folder.resolve(), given.seeds)
    template = "seed: {seed} | float32: {float32:.5f} | bfloat16: {bfloat16:.5f}"
    print(markdown_table(rows_by(template, rows)))


if __name__ == "__main__":
    main()
