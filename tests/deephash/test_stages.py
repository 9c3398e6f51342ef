"""The stages of Algorithm 1 learn from classes, and say so where there are none."""

import numpy as np
import pytest

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash import (
    Experiment,
    FineTuningParameters,
    HashLayerInitParameters,
    LabelledFeatures,
    LabelledImages,
    PreTrainingParameters,
    Run,
    TrainingSet,
    fine_tune,
    initialise_hash_layer,
    pretrain,
)
from deephash_pipeline.deephash.collapse import warn_if_collapsed, warn_of_true_loss
from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.training import TrainingParameters

IMAGES = np.zeros((20, 1, 28, 28), dtype=np.uint8)
ONE_CLASS = np.zeros(20, dtype=np.int64)
UNLABELLED = TrainingSet(IMAGES, ONE_CLASS, {"mean": [0.0], "standard_deviation": [1.0]}, ["unlabelled"])
TRAINING = TrainingParameters(epochs=1, batch_size=10, learning_rate=0.1)
RUN = Run(Experiment(benchmark="images", network="lenet", seed=0), Cell(method="deephash", code_length=12))


def stage_1():
    pretrain(UNLABELLED, LabelledImages(IMAGES[:0], ONE_CLASS[:0]), PreTrainingParameters(training=TRAINING), RUN)


def stage_2():
    features = LabelledFeatures(np.zeros((20, 500), np.float32), ONE_CLASS, ["unlabelled"])
    initialise_hash_layer(features, HashLayerInitParameters(training=TRAINING), RUN)


def fine_tuning():
    fine_tune(UNLABELLED, FineTuningParameters(training=TRAINING), RUN)


@pytest.mark.parametrize("stage", [stage_1, stage_2, fine_tuning])
def test_images_without_labels_are_refused_in_one_line(stage):
    assert callable(stage)
    with pytest.raises(InputError, match=r"deephash\.b12") as caught:
        stage()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (IMAGES.astype(np.float32), ONE_CLASS, "images are float32"),
        (IMAGES[0], ONE_CLASS, "pass uint8"),
        (IMAGES, ONE_CLASS[:5], "20 images but 5 labels"),
    ],
)
def test_a_training_set_is_checked_when_it_is_made(images, labels, message):
    with pytest.raises(InputError, match=message):
        LabelledImages(images, labels)


def test_a_short_look_changes_epochs_and_rate_alone():
    quick = Experiment(benchmark="images", network="lenet", seed=0, effort=0.5)
    made = quick.training(TRAINING.model_copy(update={"epochs": 10}))
    assert made == TRAINING.model_copy(update={"epochs": 5, "learning_rate": 0.05})
    assert RUN.experiment.training(TRAINING) == TRAINING


@pytest.mark.parametrize("name", ["../evil", "", "a/b", ".hidden", "a b"])
def test_a_benchmark_that_is_no_name_of_a_folder_is_refused(name):
    with pytest.raises(ValueError, match="benchmark"):
        Experiment(benchmark=name, network="lenet", seed=0)


@pytest.mark.parametrize("alike", [18, 19])
def test_codes_that_are_all_alike_are_warned_of(alike, caplog):
    codes = np.maximum(np.arange(20) - alike + 1, 0).astype(np.uint8)[:, np.newaxis].repeat(6, axis=1)
    warn_if_collapsed(codes, ImageHasher.pretrained("digits-48"))
    expected = "deephash.b48: training has collapsed, 19 of 20 images have the same code"
    assert [message[: len(expected)] for message in caplog.messages] == [expected] * (alike == 19)


def test_codes_that_fine_tuning_has_driven_apart_are_named(caplog):
    run = Run(Experiment(benchmark="digits", network="lenet", seed=0), Cell(method="deephash", code_length=48))
    for course in ([0.8, 0.9], [1.2, 1.1], [1.2], [0.0, 0.0]):
        warn_of_true_loss(course, run)
    assert not caplog.text
    warn_of_true_loss([0.9, 1.0, 1.1], run)
    assert "deephash.b48: the codes are worse than independent ones, their true loss has risen to 1.10" in caplog.text
