"""Classes that training has not seen."""

import numpy as np

from deephash_pipeline.deephash import ClassifierRun, Experiment, LabelledImages, PreTrainingParameters, TrainingSet
from deephash_pipeline.images.sources.collection import ImageCollection, ImageSet
from deephash_pipeline.images.splits import SplitParameters, split_class_names, split_collection
from deephash_pipeline.pipelines.cnn_pretraining.nodes import pre_train
from deephash_pipeline.pipelines.data_ingestion.nodes import IngestionParameters
from tests.configuration import configured


def bars(classes, count):
    generator = np.random.default_rng(0)
    labels = np.arange(count, dtype=np.int64) % classes
    images = generator.integers(0, 90, size=(count, 1, 28, 28)).astype(np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[0, :, 4 * label : 4 * label + 4] += 150
    return ImageSet(images, labels, [f"bar {row}" for row in range(count)])


def test_a_network_learns_from_the_classes_that_are_left_and_watches_no_accuracy():
    names = ["a", "b", "c", "d", "e"]
    parameters = SplitParameters(query_count=20, unseen_classes=2)
    splits = split_collection(ImageCollection({"all": bars(5, 80)}, names), parameters, seed=1)
    training = {"epochs": 1, "batch_size": 12, "learning_rate": 0.01}
    _, softmax, history = pre_train(
        TrainingSet(
            splits["training"].images,
            splits["training"].labels,
            {"mean": [0.3], "standard_deviation": [0.3]},
            split_class_names(names, parameters, seed=1),
        ),
        LabelledImages(splits["validation"].images, splits["validation"].labels),
        PreTrainingParameters.model_validate({"training": training}),
        ClassifierRun(Experiment(benchmark="bars", network="lenet", seed=1, device="cpu")),
    )
    assert set(splits["training"].labels.tolist()) == {0, 1, 2}
    assert set(splits["query"].labels.tolist()) == {3, 4}
    assert len(softmax["bias"]) == 5
    assert "validation_accuracy" not in history


def test_the_unseen_classes_of_cifar10_choose_nothing():
    seen, unseen = (
        {key: configured(environment, key) for key in ("globals", "catalog", "parameters")}
        for environment in ("cifar10", "cifar10_unseen")
    )
    assert {name for name in seen["globals"] if unseen["globals"][name] != seen["globals"][name]} == {
        *("benchmark", "protocol", "data_ingestion", "notes")
    }
    assert unseen["catalog"]["raw_images"]["filepath"] == seen["catalog"]["raw_images"]["filepath"]
    assert unseen["catalog"]["raw_images"]["source"] == seen["catalog"]["raw_images"]["source"]
    differing = {name for name in seen["parameters"] if unseen["parameters"][name] != seen["parameters"][name]}
    assert differing == {"experiment", "protocol", "data_ingestion", "reporting"}
    split = IngestionParameters.model_validate(unseen["parameters"]["data_ingestion"])
    assert split == IngestionParameters(unseen_classes=3)
