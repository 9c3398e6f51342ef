"""Simultaneous fine-tuning: all layers on one loss."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deephash_pipeline.deephash.collapse import warn_if_collapsed
from deephash_pipeline.deephash.experiment import Experiment, Run
from deephash_pipeline.deephash.fine_tune import PreTrainedWeights, fine_tune
from deephash_pipeline.deephash.fine_tuning_parameters import FineTuningParameters
from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.deephash.training_set import TrainingSet
from deephash_pipeline.deephash.trials import fine_tuning_as_chosen
from deephash_pipeline.pipelines.shared.fitting import encode_z
from deephash_pipeline.pipelines.shared.searching import Sets
from deephash_pipeline.retrieval import CodeSets


class OtherSets(NamedTuple):
    """Images, uint8 (n, channels, height, width), that no network is trained on."""

    query: NDArray[np.uint8]
    validation: NDArray[np.uint8]


class PreTrainedStart(NamedTuple):
    """What pre-training gives: weights, z of the three sets, and what its trials chose, if there were any."""

    weights: PreTrainedWeights
    z: Sets
    chosen_by_trials: Mapping[str, float] = MappingProxyType({})


def fine_tune_and_encode(
    training_set: TrainingSet,
    parameters: FineTuningParameters,
    run: Run,
    others: OtherSets,
    start: PreTrainedStart | None = None,
) -> tuple[ImageHasher, pd.DataFrame, CodeSets]:
    """Train all layers, see `fine_tune`, and hash the three sets.

    Args:
        training_set: images that are learned from.
        parameters: hash layer, loss, training and augmentation.
        run: network, code length, seed, device, checkpoints.
        others: images of the queries and of the validation set.
        start: what pre-training gives; None for random weights everywhere.

    Returns:
        The fine-tuned network, a row for each of its epochs, and the codes of the three sets.
    """
    if start is not None:
        parameters = fine_tuning_as_chosen(parameters, start.chosen_by_trials)
    hasher, history = fine_tune(training_set, parameters, run, None if start is None else start.weights)
    images = Sets(others.query, training_set.images, others.validation)
    return hasher, history, encode_images(hasher, run.experiment, images, None if start is None else start.z)


def encode_images(hasher: ImageHasher, experiment: Experiment, images: Sets, z: Sets | None = None) -> CodeSets:
    """Hash database, validation set and queries; of a frozen trunk by the z there is."""
    if experiment.trunk.frozen and z is not None:
        codes = encode_z(hasher.encoder, z)
    else:
        hasher.to(experiment.device)
        query, database, validation = map(hasher.encode, images)
        codes = CodeSets(database, validation, query, hasher.code_length)
    warn_if_collapsed(codes.database, hasher)
    return codes
