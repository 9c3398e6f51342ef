"""One trial of a search, judged by validation images that ask and others that are searched."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Literal

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.deephash.experiment import Run
from deephash_pipeline.deephash.fine_tune import PreTrainedWeights, fine_tune
from deephash_pipeline.deephash.fine_tuning_parameters import FineTuningParameters
from deephash_pipeline.deephash.training_set import LabelledImages, TrainingSet
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.images.splits import stratified_draw
from deephash_pipeline.networks import HashNetwork
from deephash_pipeline.retrieval import count_distances, mean_average_precision, pack_bits
from deephash_pipeline.training import NoFurtherEpoch, TrainingDiverged, outputs_in_blocks
from deephash_pipeline.tuning.space import TRIAL_SCORE, TuningParameters, search_space, with_values


def halves(validation_set: LabelledImages, seed: int) -> tuple[LabelledImages, LabelledImages]:
    """Split the validation images, class by class, into those that ask and those that are searched.

    Raises:
        InputError: there are too few of them.

    Example:
        >>> images = LabelledImages(np.zeros((6, 1, 28, 28), np.uint8), np.array([0, 0, 0, 0, 1, 1]))
        >>> [part.labels.tolist() for part in halves(images, seed=0)]
        [[0, 0, 1], [0, 0, 1]]
    """
    labels = validation_set.labels
    asking = stratified_draw(labels, len(labels) // 2, seed)
    searched = np.setdiff1d(np.arange(len(labels)), asking, assume_unique=True)
    if not len(asking) or not np.isin(labels[asking], labels[searched]).any():
        raise InputError(
            f"tuning needs validation images, two of a class at least, and there are {len(labels)}: "
            "set data_ingestion.validation_share or training_count"
        )
    return tuple(LabelledImages(validation_set.images[rows], labels[rows]) for rows in (asking, searched))  # type: ignore[return-value]


@dataclass(frozen=True)
class HeldOutScore:
    """Tie-aware mAP of one half of the validation images against the other.

    Attributes:
        asking: images that ask.
        searched: images that are searched.
        training_set: training set whose pixel statistics images are normalised by.
    """

    asking: LabelledImages
    searched: LabelledImages
    training_set: TrainingSet

    def __call__(self, network: HashNetwork) -> dict[str, float]:
        """Measure a network where it is, in evaluation mode."""
        asking, searched = (self._codes(network, images) for images in (self.asking, self.searched))
        bits = network.hash_layer.linear_code().threshold.shape[0]
        histograms = count_distances(asking, self.asking.labels, searched, self.searched.labels, bits)
        return {TRIAL_SCORE: mean_average_precision(histograms)}

    def _codes(self, network: HashNetwork, images: LabelledImages) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        device = next(network.parameters()).device
        inputs = ImageInputs(images.images, self.training_set.statistics, device, size=network.trunk.image_size)
        return pack_bits(outputs_in_blocks(network, inputs) >= 0)


@dataclass(frozen=True)
class TrialJob:
    """What all trials of a method have in common.

    Attributes:
        training_set: images that are learned from.
        validation_set: images that a network is judged by, which are no queries.
        method: parameters of the method as they are configured; what is searched is replaced.
        start: starting point of pre-training; the same for all methods.
        run: network, code length, seed, device. No checkpoints: a trial is short, and is repeated.
        tuning: the search.
    """

    training_set: TrainingSet
    validation_set: LabelledImages
    method: FineTuningParameters
    start: PreTrainedWeights
    run: Run
    tuning: TuningParameters

    @cached_property
    def score(self) -> HeldOutScore:
        """Score of a network."""
        seed = derive_seed(self.run.experiment.seed, "tuning")
        return HeldOutScore(*halves(self.validation_set, seed), self.training_set)

    def shortened(self, values: dict[str, float]) -> FineTuningParameters:
        """Give the parameters of a trial."""
        parameters = with_values(self.method, values)
        training = self.run.experiment.training(parameters.training)
        epochs = max(1, round(self.tuning.epoch_share * training.epochs))
        return parameters.model_copy(update={"training": training.model_copy(update={"epochs": epochs})})


@dataclass(frozen=True)
class Outcome:
    """How a trial ended.

    Attributes:
        state: ``complete``; ``pruned``, stopped early; ``failed``, its loss ceased to be finite.
        scores: scores by epoch, counted from 1.
        seconds: seconds that the trial took.

    Example:
        >>> Outcome("pruned", scores={1: 0.42}, seconds=3.5).state
        'pruned'
    """

    state: Literal["complete", "pruned", "failed"]
    scores: dict[int, float]
    seconds: float


class Pruned(NoFurtherEpoch):
    """The trial is below the median of those before it."""


class TrialWatch:
    """Reports each epoch's score, and stops a trial that falls below the median.

    Args:
        trial: trial of Optuna, in a study with the trials to compare with.
        score: score of a network.
    """

    def __init__(self, trial: optuna.Trial, score: HeldOutScore) -> None:
        self.trial, self.score = trial, score
        self.scores: dict[int, float] = {}

    def __call__(self, network: HashNetwork) -> dict[str, float]:
        """Measure a network after one more epoch.

        Raises:
            Pruned: the trial is not worth going on with.
        """
        measured = self.score(network)
        epoch = len(self.scores) + 1
        self.scores[epoch] = measured[TRIAL_SCORE]
        self.trial.report(measured[TRIAL_SCORE], epoch)
        if self.trial.should_prune():
            raise Pruned
        return measured


def run_trial(job: TrialJob, values: dict[str, float], earlier: Sequence[FrozenTrial]) -> Outcome:
    """Train with some values.

    Args:
        job: configuration that all trials have in common.
        values: values drawn, a number each, by dotted name.
        earlier: finished trials, whose medians this one is compared with.
    """
    began = perf_counter()
    parameters = job.shortened(values)
    watch = TrialWatch(_trial_among(earlier, values, job, parameters.training.epochs), job.score)
    state: Literal["complete", "pruned", "failed"] = "complete"
    # Its epochs and rate are already those of a trial.
    experiment = job.run.experiment.model_copy(update={"effort": 1.0})
    try:
        fine_tune(job.training_set, parameters, Run(experiment, job.run.cell), job.start, watch)
    except Pruned:
        state = "pruned"
    except TrainingDiverged:
        state = "failed"
    return Outcome(state, watch.scores, perf_counter() - began)


def _trial_among(earlier: Sequence[FrozenTrial], values: dict[str, float], job: TrialJob, epochs: int) -> optuna.Trial:
    tuning = job.tuning
    pruner = optuna.pruners.MedianPruner(
        n_startup_trials=tuning.trials_before_pruning, n_warmup_steps=round(tuning.epochs_before_pruning * epochs)
    )
    study = optuna.create_study(direction="maximize", pruner=pruner)
    study.add_trials(earlier)
    study.enqueue_trial(values)
    return study.ask({**search_space(job.method, tuning)})
