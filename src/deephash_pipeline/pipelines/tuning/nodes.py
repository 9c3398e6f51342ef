"""A search of one method's parameters."""

from pathlib import Path

import pandas as pd

from deephash_pipeline.deephash.experiment import Run
from deephash_pipeline.deephash.fine_tune import FineTuningParameters, PreTrainedWeights
from deephash_pipeline.deephash.training_set import LabelledImages, TrainingSet
from deephash_pipeline.randomness import derive_seed
from deephash_pipeline.tuning import HeldOutScore, TrialJob, TuningParameters, halves, search


def search_parameters(
    training_set: TrainingSet,
    validation_set: LabelledImages,
    method: FineTuningParameters,
    tuning: TuningParameters,
    run: Run,
    start: PreTrainedWeights,
    study: Path,
) -> pd.DataFrame:
    """Make the trials of a cell's method that its study lacks; returns a row for each trial."""
    asking, searched = halves(validation_set, derive_seed(run.experiment.seed, "tuning"))
    score = HeldOutScore(asking, searched, training_set)
    trials = search(TrialJob(training_set, score, method, start, run, tuning), study)
    trials.insert(0, "method", run.cell.method)
    trials.insert(1, "code_length", run.code_length)
    return trials
