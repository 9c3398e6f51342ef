"""SUN397 as it is configured, on a generated tree in the folders of the release: listed, split, cropped, trained on."""

import numpy as np
import pytest
import torch
from PIL import Image

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.deephash import Experiment, FineTuningParameters, Run, TrainingSet, fine_tune
from deephash_pipeline.deephash.fine_tune import build_network
from deephash_pipeline.images.decoding.ingestion import decode_splits
from deephash_pipeline.images.sources.registry import parse_source
from deephash_pipeline.images.splits import SplitParameters, split_collection
from deephash_pipeline.images.statistics import pixel_statistics
from deephash_pipeline.pipelines.data_ingestion.nodes import IngestionParameters
from tests.configuration import configured

LETTERS = "abcdefghijklmnopqrstuvwyz"
NESTED = [f"{letter}/{letter}_house/{side}" for letter in LETTERS[:15] for side in ("indoor", "outdoor")]
CLASSES = sorted(NESTED + [f"{LETTERS[number % 25]}/scene_{number}" for number in range(397 - len(NESTED))])
IMAGES_PER_CLASS = 5
SPLIT = SplitParameters(query_count=397)
EXPERIMENT = Experiment(benchmark="sun397", network="caffenet", seed=42, device="cpu")


def resolved():
    return configured("sun397", "parameters")


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    root = tmp_path_factory.mktemp("sun397")
    for label, name in enumerate(CLASSES):
        (root / name).mkdir(parents=True)
        for number in range(IMAGES_PER_CLASS):
            colour = (label % 256, 50 * number, 100 * (label // 256))
            Image.new("RGB", (16, 12), colour).save(root / name / f"sun_{label:04d}{number}.jpg")
    (root / "ClassName.txt").write_text("\n".join(f"/{name}" for name in CLASSES))
    source = parse_source(configured("sun397", "catalog")["raw_images"]["source"])
    return source.read(root)


def test_every_folder_that_holds_images_is_a_class_nested_or_not(collection):
    assert len(CLASSES) == len(set(CLASSES)) == 397
    assert sorted(collection.class_names) == CLASSES
    images = collection.splits["all"]
    assert images.images.shape == (1985, 3, 256, 256)
    folders = [collection.class_names[label] for label in images.labels]
    assert folders == [name.rpartition("/")[0] for name in images.ids]


def test_a_fifth_of_every_class_is_drawn_by_the_seed(collection):
    first, again, other = (split_collection(collection, SPLIT, seed) for seed in (42, 42, 43))
    np.testing.assert_array_equal(np.bincount(first["training"].labels), np.full(397, 4))
    np.testing.assert_array_equal(np.bincount(first["query"].labels), np.full(397, 1))
    assert not len(first["validation"])
    assert first["query"].ids == again["query"].ids != other["query"].ids
    assert sorted(first["training"].ids + first["query"].ids) == sorted(collection.splits["all"].ids)


def test_the_configured_split_is_the_papers():
    parameters = IngestionParameters.model_validate(resolved()["data_ingestion"])
    assert parameters == IngestionParameters(query_count=21751)
    assert parameters.query_count == round(108754 / 5)


def test_one_step_on_crops_of_warped_images_changes_every_weight(tmp_path, collection):
    chosen = split_collection(collection, SPLIT, seed=42)["training"].take(np.array([0, 1, 800, 1500]))
    one_label = type(chosen)(chosen.images, np.array([0, 0, 1, 2]), chosen.ids)
    decoded, broken = decode_splits({"training": one_label, "query": one_label}, ["a", "b", "c"], 0.0, tmp_path)
    images, labels = np.asarray(decoded["training"].images), decoded["training"].labels
    assert not broken
    assert images.shape == (4, 3, 256, 256)
    configuration = resolved()["fine_tuning"]["deephash_random_start"]
    assert configuration["training"]["batch_size"] == 600
    training = {**configuration["training"], "batch_size": 4, "epochs": 1, "learning_rate": 0.01}
    parameters = FineTuningParameters.model_validate({**configuration, "training": training})
    cell = Cell(method="deephash_random_start", code_length=12)

    training_set, run = TrainingSet(images, labels, pixel_statistics(images), ["a", "b", "c"]), Run(EXPERIMENT, cell)
    hasher, history = fine_tune(training_set, parameters, run)
    weights = hasher.trunk.state_dict()

    assert np.isfinite(history["loss"]).all()
    before = build_network(training_set, parameters, run).trunk.state_dict()
    assert not [name for name, tensor in weights.items() if torch.equal(tensor, before[name])]
    assert hasher.features(images).shape == (4, 9216)
    assert hasher.encode(images).shape == (4, 2)


def test_every_training_has_the_papers_batch_and_schedule():
    parameters = resolved()
    methods = {name: FineTuningParameters.model_validate(block) for name, block in parameters["fine_tuning"].items()}
    assert {(stage.training.batch_size, stage.training.schedule) for stage in methods.values()} == {(600, "plateau")}
    for name in ("cnn_pretraining", "hash_layer_init"):
        assert (parameters[name]["training"]["batch_size"], parameters[name]["training"]["schedule"]) == (
            600,
            "plateau",
        )


def test_the_configured_source_is_warped_and_larger_than_the_crop():
    source = parse_source(configured("sun397", "catalog")["raw_images"]["source"])
    assert (source.image_size, source.channels) == (256, 3)
    assert configured("sun397", "globals")["network"] == "caffenet"
