"""Pre-training, stage 2: the hash layer learns to classify on frozen features (Algorithm 1 of the paper)."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.deephash.experiment import Run, StageParameters
from deephash_pipeline.deephash.training_set import LabelledFeatures
from deephash_pipeline.hashing.encoder import Encoder
from deephash_pipeline.hashing.learned import LearnedHashLayer
from deephash_pipeline.hashing.linear import feature_mean, hyperplanes_through
from deephash_pipeline.hashing.rows import row_blocks
from deephash_pipeline.images.sources.collection import require_labels
from deephash_pipeline.networks import HashLayer, HashLayerParameters, HashSoftmaxNetwork, initialise
from deephash_pipeline.training import ArrayInputs, LabelledInputs, classification_objective, first_batch, train


class HashLayerInitParameters(StageParameters):
    """How to train the hash layer under a softmax layer, on z.

    Example:
        >>> from deephash_pipeline.training import TrainingParameters
        >>> training = TrainingParameters(epochs=3, batch_size=8, learning_rate=0.1)
        >>> HashLayerInitParameters(training=training).training.batch_size
        8
    """


class InitialisedHashLayer(NamedTuple):
    """What stage 2 leaves.

    Attributes:
        weights: W as ``weight`` of shape (code_length, z_dimension).
        encoder: the hash function that W amounts to.
        history: a row for each epoch.

    Example:
        >>> import torch
        >>> from deephash_pipeline.hashing import LSH
        >>> weights = {"weight": torch.zeros(12, 500)}
        >>> InitialisedHashLayer(weights, LSH(code_length=12), pd.DataFrame({"epoch": [1]})).encoder.code_length
        12
    """

    weights: dict[str, Tensor]
    encoder: Encoder
    history: pd.DataFrame


def initialise_hash_layer(
    features: LabelledFeatures, parameters: HashLayerInitParameters, run: Run
) -> InitialisedHashLayer:
    """Train z -> W -> tanh -> softmax on the class labels and keep W.

    Raises:
        InputError: images of one class alone, and what `deephash_pipeline.training.train` raises.

    Example:
        >>> from deephash_pipeline.deephash import Experiment, LabelledFeatures, Run
        >>> from deephash_pipeline.common.cell import Cell
        >>> from deephash_pipeline.training import TrainingParameters
        >>> experiment = Experiment(benchmark="two", network="lenet", seed=0, device="cpu")
        >>> run = Run(experiment, Cell(method="deephash_pretrained", code_length=8))
        >>> z, labels = np.eye(2, dtype=np.float32).repeat(8, axis=0), np.arange(2).repeat(8)
        >>> features = LabelledFeatures(z, labels, ["a", "b"])
        >>> training = TrainingParameters(epochs=2, batch_size=8, learning_rate=0.1)
        >>> initialised = initialise_hash_layer(features, HashLayerInitParameters(training=training), run)
        >>> initialised.weights["weight"].shape, len(initialised.history)
        (torch.Size([8, 2]), 2)
    """
    require_labels(features.labels, run.name)
    code_length, training = run.code_length, run.experiment.training(parameters.training)
    seed = derive_seed(run.experiment.seed, "pre-training, stage 2", code_length)
    hash_layer = HashLayer(features.z.shape[1], code_length, HashLayerParameters(), derive_seed(seed, "hash layer"))
    hash_layer.fit_scale(torch.from_numpy(features.z[first_batch(len(features.z), training, seed)]))
    network = HashSoftmaxNetwork(hash_layer, len(features.class_names))
    initialise(network.softmax, derive_seed(seed, "weights"))
    history = train(
        network,
        classification_objective(features.labels),
        LabelledInputs(ArrayInputs(features.z, run.device), features.labels),
        training,
        run.engine_run(parameters, seed),
    )
    hash_layer.cpu()
    weights = {"weight": hash_layer.weight.detach()}
    told = run.history(history, "hash_layer_initialisation")
    return InitialisedHashLayer(weights, hash_layer_encoder(hash_layer), told)


def initialise_on_raw_features(
    features: LabelledFeatures, parameters: HashLayerInitParameters, run: Run
) -> tuple[Encoder, pd.DataFrame]:
    """Train the hash layer on features of any scale, such as a hand-crafted descriptor, standardised first.

    The standardisation is part of the encoder's hyperplanes, which take the features as they come.

    Example:
        >>> from deephash_pipeline.deephash import Experiment, LabelledFeatures, Run
        >>> from deephash_pipeline.common.cell import Cell
        >>> from deephash_pipeline.training import TrainingParameters
        >>> experiment = Experiment(benchmark="two", network="lenet", seed=0, device="cpu")
        >>> run = Run(experiment, Cell(method="deephash_pretrained", code_length=8))
        >>> z, labels = np.eye(2, dtype=np.float32).repeat(8, axis=0), np.arange(2).repeat(8)
        >>> features = LabelledFeatures(z, labels, ["a", "b"])
        >>> training = TrainingParameters(epochs=2, batch_size=8, learning_rate=0.1)
        >>> encoder, _ = initialise_on_raw_features(features, HashLayerInitParameters(training=training), run)
        >>> encoder.transform(features.z).shape
        (16, 8)
    """
    mean, deviation = moments(features.z)
    standardised = np.empty(features.z.shape, dtype=np.float32)
    for rows in row_blocks(features.z):
        standardised[rows] = (features.z[rows] - mean) / deviation
    weights, _, history = initialise_hash_layer(replace(features, z=standardised), parameters, run)
    # w . (x - mean) / deviation >= 0: the layer has no bias.
    directions = weights["weight"].numpy().T / deviation[:, np.newaxis]
    encoder = LearnedHashLayer.from_arrays(run.code_length, hyperplanes_through(mean, directions))
    return encoder, history


def moments(features: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each feature of (n, features); 1 as the deviation of a constant one.

    Example:
        >>> moments(np.array([[1.0, 2.0], [3.0, 2.0]], dtype=np.float32))
        (array([2., 2.]), array([1., 1.]))
    """
    mean = feature_mean(features)
    squares = np.zeros_like(mean)
    for rows in row_blocks(features):
        squares += np.square(features[rows] - mean).sum(axis=0)
    deviation = np.sqrt(squares / len(features))
    # The mean of equal float32 values may differ from them by a rounding error.
    return mean, np.where(deviation > np.finfo(np.float32).eps * np.abs(mean), deviation, 1.0)


def hash_layer_encoder(hash_layer: HashLayer) -> Encoder:
    """Reduce a trained hash layer to what encoding needs.

    Example:
        >>> layer = HashLayer(500, 48, HashLayerParameters(), seed=0)
        >>> hash_layer_encoder(layer).transform(np.zeros((2, 500), dtype=np.float32)).shape
        (2, 48)
    """
    code = hash_layer.linear_code()
    arrays = {"projection": code.projection.numpy(), "threshold": code.threshold.numpy()}
    return LearnedHashLayer.from_arrays(len(code.threshold), arrays)
