"""A search of one method's parameters."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.deephash.experiment import Run
from deephash_pipeline.deephash.fine_tune import FineTuningParameters, PreTrainedWeights
from deephash_pipeline.deephash.training_set import LabelledImages, TrainingSet
from deephash_pipeline.retrieval.protocols import require_protocol
from deephash_pipeline.tuning.space import TuningParameters
from deephash_pipeline.tuning.study import search
from deephash_pipeline.tuning.trial import HeldOutScore, TrialJob, halves


@dataclass(frozen=True)
class TunedCell:
    """What is tuned: a method at a code length, as it is configured, from where its training starts."""

    method: FineTuningParameters
    run: Run
    start: PreTrainedWeights


@dataclass(frozen=True)
class Study:
    """How it is tuned, by which protocol its queries will search, and where its trials are stored."""

    tuning: TuningParameters
    protocol: str
    trials: Path


def search_parameters(
    training_set: TrainingSet, validation_set: LabelledImages, cell: TunedCell, study: Study
) -> pd.DataFrame:
    """Make the trials of a cell's method that its study lacks; returns a row for each trial.

    Raises:
        InputError: the protocol searches the validation images, which trials are judged by.
    """
    if "validation" in require_protocol(study.protocol).database:
        raise InputError(
            f"tuning judges by validation images, and protocol {study.protocol} searches them: tune by protocol paper, "
            "and carry the winners over"
        )
    asking, searched = halves(validation_set, derive_seed(cell.run.experiment.seed, "tuning"))
    score = HeldOutScore(asking, searched, training_set)
    trials = search(TrialJob(training_set, score, cell.method, cell.start, cell.run, study.tuning), study.trials)
    trials.insert(0, "method", cell.run.cell.method)
    trials.insert(1, "code_length", cell.run.code_length)
    return trials
