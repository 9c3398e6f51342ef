"""A grid of short trainings of one network, in a module that worker processes import."""

import hashlib
import multiprocessing
from contextlib import ExitStack
from time import perf_counter
from typing import Any

import numpy as np
import torch
from kedro.io import DataCatalog, MemoryDataset
from kedro.pipeline import Node, Pipeline
from kedro_datasets.json import JSONDataset

from benchmarks.training_cases import CASES, CLASSES
from deephash_pipeline.common.devices import threads
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.networks import build_trunk
from deephash_pipeline.project.datasets import AtomicDataset
from deephash_pipeline.training import LabelledInputs, TrainingParameters, TrainingRun, train

IMAGES = 4096
STATISTICS = {"mean": [0.5], "standard_deviation": [0.29]}
SPAWN = multiprocessing.get_context("spawn")
LIFE_OF_THE_PROCESS = ExitStack()


def train_one(training: dict[str, Any]) -> dict[str, str]:
    """Fine-tune a fresh network on random images; returns the SHA-256 of its weights.

    Args:
        training: `network`, `seed` and `steps` of 128 images.
    """
    case = next(case for case in CASES if case.network == training["network"] and case.hashing)
    network, objective = case.build()
    shape = build_trunk(case.network).image_shape
    draws = np.random.default_rng(training["seed"])
    labels = draws.integers(0, CLASSES, IMAGES)
    pixels = draws.integers(0, 256, (IMAGES, *shape), dtype=np.uint8)
    statistics = {name: value * shape[0] for name, value in STATISTICS.items()}
    device = torch.device("cpu")
    inputs = ImageInputs(pixels, statistics, device, case.augmentation)
    epochs = max(1, training["steps"] * case.batch_size // IMAGES)
    parameters = TrainingParameters(epochs=epochs, batch_size=case.batch_size, learning_rate=1e-3, schedule="one_cycle")
    run = TrainingRun(f"training {training['seed']}", training["seed"], device)
    train(network, objective, LabelledInputs(inputs, labels), parameters, run)
    digest = hashlib.sha256()
    for tensor in network.state_dict().values():
        digest.update(tensor.contiguous().numpy().tobytes())
    return {"weights": digest.hexdigest()}


def as_pipeline(trainings: list[dict[str, Any]], folder: str) -> tuple[Pipeline, DataCatalog]:
    """Make a node of each training, and a catalog that stores what they return."""
    catalog = DataCatalog()
    for number, training in enumerate(trainings):
        catalog[f"params:t{number}"] = MemoryDataset(training)
        catalog[f"t{number}.weights"] = AtomicDataset(f"{folder}/{number}.json", dataset={"type": JSONDataset})
    nodes = [
        Node(train_one, f"params:t{number}", f"t{number}.weights", name=f"t{number}.train")
        for number in range(len(trainings))
    ]
    return Pipeline(nodes), catalog


def one_after_the_other(
    trainings: list[dict[str, Any]], processes: int, thread_count: int
) -> tuple[float, list[dict[str, str]]]:
    """Train without a runner: processes that take one training after the other, and nothing else.

    Returns:
        Seconds from when all have imported and made one step, and what the trainings return.
    """
    ready = SPAWN.Barrier(processes + 1)
    with SPAWN.Pool(processes, _warm_up, ({**trainings[0], "steps": 1}, thread_count, ready)) as pool:
        ready.wait()
        began = perf_counter()
        results = pool.map(train_one, trainings, chunksize=1)
        return perf_counter() - began, results


def _warm_up(training: dict[str, Any], thread_count: int, ready: Any) -> None:
    # A stack that nobody held on to would be collected, and the number of threads set back.
    LIFE_OF_THE_PROCESS.enter_context(threads(thread_count))
    train_one(training)
    ready.wait()
