"""Short trainings that choose the augmentation and the learning rate of stage 1, judged by images held out of them.

What helps a network depends on the images: mirror images of letters are other letters, quarter turns of shapes are the
same shapes. Trials ask the training images themselves. A third of them judges; the images that measure the hasher in
the end take no part.

Whether a move helps cannot be seen in a short training, which has more to learn with it. So a trial learns from images
as they are, and is judged by others as they are and moved. Where moved images are as frequent as others, such as shapes
in any position, both are judged alike, whatever was learned; a photograph upside down is judged worse than upright.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.deephash.experiment import ClassifierRun
from deephash_pipeline.deephash.fine_tuning_parameters import FineTuningParameters
from deephash_pipeline.deephash.pretraining_parameters import PreTrainingParameters
from deephash_pipeline.deephash.training_set import LabelledImages, TrainingSet
from deephash_pipeline.images.augmentation import AugmentationParameters, augment
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.networks import SoftmaxNetwork
from deephash_pipeline.training import CheckpointFolder, TrainingDiverged, outputs_in_blocks

logger = logging.getLogger(__name__)

MOST_IMAGES = 3_000
"""Of these a trial learns from two thirds."""
SEEN_IN_A_TRIAL = 15_000
"""Images that a trial looks at, of 32 pixels a side; of larger ones fewer, as each takes longer."""
USUAL_SIDE = 32
JUDGES = 3
"""One image of so many judges."""
CLEARLY = 2
"""Standard errors of an accuracy by which a candidate must be better than an earlier one."""
CLEARLY_WORSE = 3
"""Standard errors of the mean loss by which moved images must be judged worse than the same unmoved."""
RATE_FACTORS = (0.3, 3.0)
MOVES = ("horizontal_flip", "quarter_turns")
RATE_FACTOR = "rate_factor"


class Classifier(Protocol):
    """What a training of stage 1 leaves: a row for each epoch, and the states of trunk and softmax layer."""

    @property
    def history(self) -> pd.DataFrame:
        """Table of the epochs."""

    @property
    def trunk(self) -> dict[str, Tensor]:
        """State of the trunk."""

    @property
    def softmax(self) -> dict[str, Tensor]:
        """State of the softmax layer."""


Train: TypeAlias = Callable[[TrainingSet, LabelledImages, PreTrainingParameters, ClassifierRun], Classifier]


def choose_pretraining(
    training_set: TrainingSet, usual: PreTrainingParameters, run: ClassifierRun, train: Train
) -> PreTrainingParameters:
    """Choose by images held out whether images are mirrored and turned, then the learning rate.

    Args:
        training_set: images of which the trials learn from some and are judged by others.
        usual: parameters of stage 1; the trials change its augmentation, rate and epochs.
        run: network, seed, device, and checkpoints: a trial that had finished is not repeated.
        train: function that trains, see `deephash_pipeline.deephash.pretrain`.

    Returns:
        `usual` with those moves after which the judges are classified as well as before, and the learning rate that was
        best with them. The usual rate is kept unless another is better by two standard errors of an accuracy. `usual`
        itself where there are too few images for a trial; its moves where the first trial is near chance.
    """
    usual = usual.model_copy(update={"trials": False})
    trials = Trials(*_parts(training_set, run.experiment.seed), run, train)
    if not len(trials.judges.labels) or len(trials.learned.labels) < usual.training.batch_size:
        return usual
    moved = trials.with_moves(usual)
    chosen = trials.best_of([moved, *(_with_rate(moved, factor) for factor in RATE_FACTORS)])
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
    return {**chosen.augmentation.model_dump(include=set(MOVES)), RATE_FACTOR: round(factor, 6)}


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

    def with_moves(self, usual: PreTrainingParameters) -> PreTrainingParameters:
        """Give `usual` with the moves after which the judges are classified as well as before."""
        still = _with_moves(usual, dict.fromkeys(MOVES, False))
        made = self.trained(still)
        if made is None or self.scores[still] < _largest_share(self.judges.labels) + self.clearly:
            return usual
        network = self._network(made)
        images = self.judges.images
        before = self._losses(network, images)

        def are_as_good(moved: NDArray[np.uint8]) -> bool:
            worse = self._losses(network, moved) - before
            return bool(worse.mean() <= CLEARLY_WORSE * worse.std() / len(worse) ** 0.5)

        # Half a turn leaves the frame as it is. After quarters another part of the image is seen, so it need only be
        # known better than by chance, which is not so where classes differ by a direction; half of the draws are these.
        turns = are_as_good(images[..., ::-1, ::-1]) and bool(
            (2 * self._losses(network, self._turned()) - before).mean() < self._chance_loss
        )
        return _with_moves(usual, {"horizontal_flip": are_as_good(images[..., ::-1]), "quarter_turns": turns})

    def _turned(self) -> NDArray[np.uint8]:
        images = torch.from_numpy(np.array(self.judges.images)).float()
        seed = derive_seed(self.run.experiment.seed, "turned judges")
        return augment(images, AugmentationParameters(quarter_turns=True), seed).round().byte().numpy()

    @property
    def _chance_loss(self) -> float:
        """Loss of who knows the frequencies of the classes alone."""
        labels = self.judges.labels
        indicators = labels if labels.ndim == 2 else np.eye(len(self.learned.class_names))[labels]
        frequencies = indicators.mean(axis=0).clip(1e-9, 1 - 1e-9)
        each = frequencies * np.log(frequencies)
        return -float((each + (1 - frequencies) * np.log1p(-frequencies) if labels.ndim == 2 else each).sum())

    @property
    def clearly(self) -> float:
        """By how much an accuracy must differ."""
        return float(CLEARLY * (0.25 / len(self.judges.labels)) ** 0.5)

    def best_of(self, candidates: Iterable[PreTrainingParameters]) -> PreTrainingParameters:
        """Give the first candidate, or a later one that is clearly better than the best before it."""
        best, *others = candidates
        for candidate in (best, *others):
            if candidate not in self.scores:
                self.trained(candidate)
            if self.scores[candidate] > self.scores[best] + self.clearly:
                best = candidate
        return best

    def trained(self, candidate: PreTrainingParameters) -> Classifier | None:
        """Train for a few epochs, and measure the accuracy on the judges; 0, and None, where the training diverges."""
        height, width = self.learned.images.shape[2:]
        seen = SEEN_IN_A_TRIAL * self.run.experiment.effort * min(1, USUAL_SIDE / (height * width) ** 0.5)
        epochs = max(1, round(seen / len(self.learned.labels)))
        short = candidate.model_copy(update={"training": candidate.training.model_copy(update={"epochs": epochs})})
        # The experiment's share of the epochs is in their number already.
        experiment = self.run.experiment.model_copy(update={"effort": 1.0})
        try:
            made = self.train(self.learned, self.judges, short, ClassifierRun(experiment, self._checkpoints(short)))
        except TrainingDiverged as error:
            logger.info("a trial: %s", error)
            self.scores[candidate] = 0.0
            return None
        accuracy = float(made.history["validation_accuracy"].iloc[-1])
        logger.debug("a trial at rate %g, %s: %.3f", short.training.learning_rate, short.augmentation, accuracy)
        self.scores[candidate] = accuracy
        return made

    def _network(self, made: Classifier) -> SoftmaxNetwork:
        trunk = self.run.experiment.trunk_for(self.learned.images.shape[1:])
        network = SoftmaxNetwork(trunk, len(self.learned.class_names))
        network.trunk.load_state_dict(made.trunk)
        network.softmax.load_state_dict(made.softmax)
        return network.to(self.run.device)

    def _losses(self, network: SoftmaxNetwork, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Loss of each of the judges, shape (judges,), by their images or these moved."""
        size = network.trunk.image_size
        inputs = ImageInputs(np.ascontiguousarray(images), self.learned.statistics, self.run.device, size=size)
        outputs, labels = torch.from_numpy(outputs_in_blocks(network, inputs)).double(), self.judges.labels
        if labels.ndim == 2:
            targets = torch.from_numpy(labels).double()
            return functional.binary_cross_entropy_with_logits(outputs, targets, reduction="none").sum(dim=1).numpy()
        return functional.cross_entropy(outputs, torch.from_numpy(labels).long(), reduction="none").numpy()

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


def _largest_share(labels: NDArray[np.integer[Any]]) -> float:
    """Accuracy of who always names the most frequent class."""
    return float((labels.mean(axis=0) if labels.ndim == 2 else np.bincount(labels) / len(labels)).max())


def _with_moves(usual: PreTrainingParameters, moves: dict[str, bool]) -> PreTrainingParameters:
    return usual.model_copy(update={"augmentation": usual.augmentation.model_copy(update=moves)})


def _with_rate(usual: PreTrainingParameters, factor: float) -> PreTrainingParameters:
    training = usual.training.model_copy(update={"learning_rate": factor * usual.training.learning_rate})
    return usual.model_copy(update={"training": training})
