"""SUN397 as it is configured: the paper's split, batch and schedule, and crops of warped images."""

import numpy as np
import torch

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.deephash import Experiment, FineTuningParameters, Run, TrainingSet, fine_tune
from deephash_pipeline.deephash.fine_tune import build_network
from deephash_pipeline.images.sources.registry import parse_source
from deephash_pipeline.images.statistics import pixel_statistics
from deephash_pipeline.pipelines.data_ingestion.nodes import IngestionParameters
from tests.configuration import configured


def test_the_configured_split_and_source_are_the_papers():
    parameters = IngestionParameters.model_validate(configured("sun397", "parameters")["data_ingestion"])
    assert parameters == IngestionParameters(query_count=round(108754 / 5))
    source = parse_source(configured("sun397", "catalog")["raw_images"]["source"])
    # Classes are nested or not, and images are larger than the crop that the network takes.
    assert (source.image_size, source.channels, source.class_folder) == (256, 3, "parent")
    assert configured("sun397", "globals")["network"] == "caffenet"


def test_every_training_has_the_papers_batch_and_schedule():
    parameters = configured("sun397", "parameters")
    blocks = [*parameters["fine_tuning"].values(), parameters["cnn_pretraining"], parameters["hash_layer_init"]]
    assert {(block["training"]["batch_size"], block["training"]["schedule"]) for block in blocks} == {(600, "plateau")}


def test_one_step_on_crops_of_warped_images_changes_every_weight():
    images = np.random.default_rng(0).integers(0, 256, (4, 3, 256, 256), dtype=np.uint8)
    configuration = configured("sun397", "parameters")["fine_tuning"]["deephash_random_start"]
    training = {**configuration["training"], "batch_size": 4, "epochs": 1, "learning_rate": 0.01}
    parameters = FineTuningParameters.model_validate({**configuration, "training": training})
    run = Run(
        Experiment(benchmark="sun397", network="caffenet", seed=42, device="cpu"),
        Cell(method="deephash_random_start", code_length=12),
    )
    training_set = TrainingSet(images, np.array([0, 0, 1, 2]), pixel_statistics(images), ["a", "b", "c"])
    hasher, history = fine_tune(training_set, parameters, run)
    assert np.isfinite(history["loss"]).all()
    before = build_network(training_set, parameters, run).trunk.state_dict()
    weights = hasher.trunk.state_dict()
    assert not [name for name, tensor in weights.items() if torch.equal(tensor, before[name])]
    assert hasher.features(images).shape == (4, 9216)
    assert hasher.encode(images).shape == (4, 2)
