"""One trial: a shorter training with drawn parameters, stopped early where it falls below the median of others."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

import optuna
from optuna.trial import FrozenTrial

from deephash_pipeline.deephash.experiment import Run
from deephash_pipeline.deephash.fine_tune import FineTuningParameters, PreTrainedWeights, fine_tune
from deephash_pipeline.deephash.training_set import TrainingSet
from deephash_pipeline.networks import HashNetwork
from deephash_pipeline.training import TrainingDiverged
from deephash_pipeline.tuning.objective import HeldOutScore
from deephash_pipeline.tuning.space import SCORE, TuningParameters, search_space, with_values


@dataclass(frozen=True)
class TrialJob:
    """What all trials of a method have in common.

    Attributes:
        training_set: what is learned from.
        score: of a network, on images that are no queries.
        method: its parameters as they are configured; what is searched is replaced.
        start: of pre-training; the same for all methods.
        run: network, code length, seed, device. No checkpoints: a trial is short, and is repeated.
        tuning: the search.
    """

    training_set: TrainingSet
    score: HeldOutScore
    method: FineTuningParameters
    start: PreTrainedWeights
    run: Run
    tuning: TuningParameters

    def shortened(self, values: dict[str, float]) -> FineTuningParameters:
        """Give the parameters of a trial."""
        parameters = with_values(self.method, values)
        epochs = max(1, round(self.tuning.epoch_share * self.run.experiment.training(parameters.training).epochs))
        return parameters.model_copy(update={"training": parameters.training.model_copy(update={"epochs": epochs})})


@dataclass(frozen=True)
class Outcome:
    """How a trial ended.

    Attributes:
        state: ``complete``; ``pruned``, stopped early; ``failed``, its loss ceased to be finite.
        scores: by epoch, counted from 1.
        seconds: it took.

    Example:
        >>> Outcome("pruned", scores={1: 0.42}, seconds=3.5).state
        'pruned'
    """

    state: Literal["complete", "pruned", "failed"]
    scores: dict[int, float]
    seconds: float


class Pruned(Exception):
    """The trial is below the median of those before it."""


class Watch:
    """Reports each epoch's score, and stops a trial that falls below the median.

    Args:
        trial: of Optuna, in a study with the trials to compare with.
        score: of a network.
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
        self.scores[epoch] = measured[SCORE]
        self.trial.report(measured[SCORE], epoch)
        if self.trial.should_prune():
            raise Pruned
        return measured


def run_trial(job: TrialJob, values: dict[str, float], earlier: Sequence[FrozenTrial]) -> Outcome:
    """Train with some values.

    Args:
        job: what all trials have in common.
        values: drawn, by dotted name.
        earlier: finished trials, whose medians this one is compared with.
    """
    began = perf_counter()
    parameters = job.shortened(values)
    watch = Watch(_trial_among(earlier, values, job, parameters.training.epochs), job.score)
    state: Literal["complete", "pruned", "failed"] = "complete"
    try:
        fine_tune(job.training_set, parameters, _of_a_trial(job.run), job.start, watch)
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


def _of_a_trial(run: Run) -> Run:
    # Its epochs are already those of a trial, and several devices would want checkpoints.
    experiment = run.experiment.model_copy(update={"effort": 1.0, "devices": 1})
    return Run(experiment, run.cell)
