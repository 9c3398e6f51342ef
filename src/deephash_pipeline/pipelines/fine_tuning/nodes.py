"""Simultaneous fine-tuning: all layers on one loss."""

import pandas as pd

from deephash_pipeline.deephash.experiment import Experiment, Run
from deephash_pipeline.deephash.fine_tune import FineTuningParameters, PreTrainedWeights, fine_tune, warn_if_collapsed
from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.deephash.training_set import TrainingSet
from deephash_pipeline.pipelines.shared.fitting import encode_z
from deephash_pipeline.pipelines.shared.searching import Sets
from deephash_pipeline.retrieval import CodeSets


def tune(
    training_set: TrainingSet, parameters: FineTuningParameters, run: Run, start: PreTrainedWeights | None = None
) -> tuple[ImageHasher, pd.DataFrame]:
    """Train all layers, from pre-training or from random weights; returns the hasher and a row for each epoch."""
    hasher, history = fine_tune(training_set, parameters, run, start)
    return hasher, run.named(history, "fine_tuning")


def encode_images(hasher: ImageHasher, experiment: Experiment, images: Sets, z: Sets | None = None) -> CodeSets:
    """Hash database, validation set and queries; of a frozen trunk by the z there is."""
    if experiment.trunk.frozen and z is not None:
        codes = encode_z(hasher.encoder, z.training, z.validation, z.query)
    else:
        hasher.to(experiment.device)
        query, database, validation = map(hasher.encode, images)
        codes = CodeSets(database, validation, query, hasher.code_length)
    warn_if_collapsed(codes.database, hasher)
    return codes
