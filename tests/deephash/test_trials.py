"""Short trainings see by the images themselves which moves change nothing."""

from dataclasses import replace

import numpy as np
import pytest

from deephash_pipeline.deephash import PreTrainingParameters
from deephash_pipeline.deephash.experiment import ClassifierRun, Experiment
from deephash_pipeline.deephash.pretrain import pretrain
from deephash_pipeline.deephash.training_set import TrainingSet
from deephash_pipeline.deephash.trials import choose_pretraining

SIDE, COUNT = 16, 240
STATISTICS = {"mean": [0.5], "standard_deviation": [0.2]}
USUAL = PreTrainingParameters.model_validate(
    {"trials": True, "training": {"epochs": 9, "batch_size": 16, "learning_rate": 0.02, "schedule": "one_cycle"}}
)


def pictures(bright):
    """Images of two classes with noise; `bright` gives the pixels that are brighter in the second."""
    random = np.random.default_rng(5)
    down, right = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    labels = np.arange(COUNT) % 2
    images = 128 + random.normal(0, 25, (COUNT, 1, SIDE, SIDE))
    images += 40 * np.where(labels == 1, 1, -1)[:, None, None, None] * np.where(bright(down, right), 1, -1)
    return TrainingSet(images.clip(0, 255).astype(np.uint8), labels, STATISTICS, ["dark", "bright"])


@pytest.mark.parametrize(
    ("bright", "mirrored", "turned"),
    [
        (lambda down, right: down**2 + right**2 < 0.5, True, True),
        (lambda down, right: down > 0, True, False),
        (lambda down, right: right > 0, False, False),
        (lambda down, right: abs(right) < abs(down), True, False),
    ],
    ids=["middle", "lower half", "right half", "above and below"],
)
@pytest.mark.parametrize("several", [False, True], ids=["one label", "several labels"])
def test_moves_that_leave_images_what_they_are_are_taken_and_no_others(bright, mirrored, turned, several):
    training_set = pictures(bright)
    if several:
        one_hot = np.eye(2, dtype=np.uint8)[training_set.labels]
        training_set = replace(training_set, labels=one_hot)
    experiment = Experiment(benchmark="halves", network="small_resnet", seed=3, device="cpu", effort=0.1)
    chosen = choose_pretraining(training_set, USUAL, ClassifierRun(experiment), pretrain)
    assert (chosen.augmentation.horizontal_flip, chosen.augmentation.quarter_turns) == (mirrored, turned)
    assert chosen.training.epochs == 9


def test_where_nothing_was_learned_moves_stay_as_they_were():
    training_set = pictures(lambda down, right: right > 0)
    drawn = np.random.default_rng(1).permutation(training_set.labels)
    usual = USUAL.model_copy(update={"augmentation": USUAL.augmentation.model_copy(update={"horizontal_flip": True})})
    experiment = Experiment(benchmark="halves", network="small_resnet", seed=3, device="cpu", effort=0.1)
    chosen = choose_pretraining(replace(training_set, labels=drawn), usual, ClassifierRun(experiment), pretrain)
    assert chosen.augmentation == usual.augmentation
