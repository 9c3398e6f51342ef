"""Short trainings that choose the augmentation and the learning rate of stage 1, judged by images held out of them.

What helps a network depends on the images: mirror images of letters are other letters, quarter turns of shapes are the
same shapes. Trials ask the training images themselves. A third of them judges; the images that measure the hasher in
the end take no part.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
import pandas as pd

from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.deephash.experiment import ClassifierRun
from deephash_pipeline.deephash.fine_tuning_parameters import FineTuningParameters
from deephash_pipeline.deephash.pretraining_parameters import PreTrainingParameters
from deephash_pipeline.deephash.training_set import LabelledImages, TrainingSet
from deephash_pipeline.training import CheckpointFolder, TrainingDiverged

logger = logging.getLogger(__name__)

MOST_IMAGES = 3_000
"""Of these a trial learns from two thirds."""
SEEN_IN_A_TRIAL = 12_000
"""Images that a trial looks at, of 32 pixels a side; of larger ones fewer, as each takes longer."""
USUAL_SIDE = 32
JUDGES = 3
"""One image of so many judges."""
CLEARLY = 2
"""Standard errors of an accuracy by which a candidate must be better than an earlier one."""
RATE_FACTORS = (0.3, 3.0)
AUGMENTATIONS = (
    {"horizontal_flip": True, "quarter_turns": True},
    {"horizontal_flip": True, "quarter_turns": False},
    {"horizontal_flip": False, "quarter_turns": False},
)

RATE_FACTOR = "rate_factor"


class HasHistory(Protocol):
    """What a training of stage 1 leaves: a row for each epoch."""

    @property
    def history(self) -> pd.DataFrame:
        """Table of the epochs."""


Train: TypeAlias = Callable[[TrainingSet, LabelledImages, PreTrainingParameters, ClassifierRun], HasHistory]


def choose_pretraining(
    training_set: TrainingSet, usual: PreTrainingParameters, run: ClassifierRun, train: Train
) -> PreTrainingParameters:
    """Choose whether images are mirrored and turned, then the learning rate, each by the accuracy on held-out images.

    Args:
        training_set: images of which the trials learn from some and are judged by others.
        usual: parameters of stage 1; the trials change its augmentation, rate and epochs.
        run: network, seed, device, and checkpoints: a trial that had finished is not repeated.
        train: function that trains, see `deephash_pipeline.deephash.pretrain`.

    Returns:
        `usual` with the augmentation and the learning rate that were best. More augmentation is kept, and the usual
        rate, unless another is better by two standard errors of an accuracy. `usual` itself where there are too few
        images for a trial.
    """
    usual = usual.model_copy(update={"trials": False})
    trials = Trials(*_parts(training_set, run.experiment.seed), run, train)
    if not len(trials.judges.labels) or len(trials.learned.labels) < usual.training.batch_size:
        return usual
    best = trials.best_of(_with_augmentation(usual, changes) for changes in AUGMENTATIONS)
    chosen = trials.best_of([best, *(_with_rate(best, factor) for factor in RATE_FACTORS)])
    augmentation = chosen.augmentation
    logger.info(
        "%d trials on %d images, judged by %d others: rate %g, mirror images %s, quarter turns %s; accuracy %.3f",
        *(len(trials.scores), len(trials.learned.labels), len(trials.judges.labels), chosen.training.learning_rate),
        *("yes" if chance else "no" for chance in (augmentation.horizontal_flip, augmentation.quarter_turns)),
        trials.scores[chosen],
    )
    return chosen


def choice_of_trials(usual: PreTrainingParameters, chosen: PreTrainingParameters) -> dict[str, float]:
    """Say what trials have changed: whether images are mirrored and turned, and the rate as a multiple of the usual.

    Example:
        >>> training = {"epochs": 1, "batch_size": 8, "learning_rate": 0.1}
        >>> usual = PreTrainingParameters.model_validate({"training": training})
        >>> choice_of_trials(usual, _with_rate(usual, 3.0))
        {'horizontal_flip': False, 'quarter_turns': False, 'rate_factor': 3.0}
    """
    factor = chosen.training.learning_rate / usual.training.learning_rate
    return {**chosen.augmentation.model_dump(include=set(AUGMENTATIONS[0])), RATE_FACTOR: round(factor, 6)}


def fine_tuning_as_chosen(parameters: FineTuningParameters, chosen: Mapping[str, float]) -> FineTuningParameters:
    """Fine-tune as trials chose for stage 1: with its mirror images and turns, and a rate changed by the same factor.

    Args:
        parameters: of fine-tuning, for the usual rate of stage 1.
        chosen: see `choice_of_trials`; empty without trials.
    """
    if not chosen:
        return parameters
    changes = {name: value for name, value in chosen.items() if name != RATE_FACTOR}
    training = {"learning_rate": chosen[RATE_FACTOR] * parameters.training.learning_rate}
    return parameters.model_copy(
        update={
            "augmentation": parameters.augmentation.model_copy(update=changes),
            "training": parameters.training.model_copy(update=training),
        }
    )


@dataclass
class Trials:
    """Short trainings on some images, judged by others.

    Attributes:
        learned: images that they learn from.
        judges: images that judge them.
        run: network, seed, device, checkpoints.
        train: function that trains.
        scores: accuracy of each candidate that was tried.
    """

    learned: TrainingSet
    judges: LabelledImages
    run: ClassifierRun
    train: Train
    scores: dict[PreTrainingParameters, float] = field(default_factory=dict)

    def best_of(self, candidates: Iterable[PreTrainingParameters]) -> PreTrainingParameters:
        """Give the first candidate, or a later one that is clearly better than the best before it."""
        clearly = CLEARLY * (0.25 / len(self.judges.labels)) ** 0.5
        best, *others = candidates
        for candidate in (best, *others):
            if candidate not in self.scores:
                self.scores[candidate] = self.accuracy(candidate)
            if self.scores[candidate] > self.scores[best] + clearly:
                best = candidate
        return best

    def accuracy(self, candidate: PreTrainingParameters) -> float:
        """Train for a few epochs, and measure the accuracy on the judges; 0 of a training that diverges."""
        height, width = self.learned.images.shape[2:]
        seen = SEEN_IN_A_TRIAL * self.run.experiment.effort * min(1, USUAL_SIDE / (height * width) ** 0.5)
        epochs = max(1, round(seen / len(self.learned.labels)))
        short = candidate.model_copy(update={"training": candidate.training.model_copy(update={"epochs": epochs})})
        # The experiment's share of the epochs is in their number already.
        experiment = self.run.experiment.model_copy(update={"effort": 1.0})
        try:
            history = self.train(self.learned, self.judges, short, ClassifierRun(experiment, self._checkpoints(short)))
        except TrainingDiverged as error:
            logger.info("a trial: %s", error)
            return 0.0
        accuracy = float(history.history["validation_accuracy"].iloc[-1])
        logger.debug("a trial at rate %g, %s: %.3f", short.training.learning_rate, short.augmentation, accuracy)
        return accuracy

    def _checkpoints(self, short: PreTrainingParameters) -> CheckpointFolder | None:
        there = self.run.checkpoints
        if there is None:
            return None
        name = f"trial {derive_seed(0, short.model_dump_json()):016x}"
        return CheckpointFolder(there.folder / name, there.seconds_between, there.provenance)


def _parts(training_set: TrainingSet, seed: int) -> tuple[TrainingSet, LabelledImages]:
    """Draw images for the trials: those that are learned from, and the judges, of the same classes."""
    count = len(training_set.labels)
    order = np.random.default_rng(derive_seed(seed, "images of trials")).permutation(count)[:MOST_IMAGES]
    judging, learning = np.sort(order[::JUDGES]), np.sort(np.delete(order, slice(None, None, JUDGES)))
    images, labels = training_set.images, training_set.labels
    if labels.ndim == 1:
        judging = judging[np.isin(labels[judging], labels[learning])]
    trial_set = TrainingSet(images[learning], labels[learning], training_set.statistics, training_set.class_names)
    return trial_set, LabelledImages(images[judging], labels[judging])


def _with_augmentation(usual: PreTrainingParameters, changes: dict[str, bool]) -> PreTrainingParameters:
    return usual.model_copy(update={"augmentation": usual.augmentation.model_copy(update=changes)})


def _with_rate(usual: PreTrainingParameters, factor: float) -> PreTrainingParameters:
    training = usual.training.model_copy(update={"learning_rate": factor * usual.training.learning_rate})
    return usual.model_copy(update={"training": training})
