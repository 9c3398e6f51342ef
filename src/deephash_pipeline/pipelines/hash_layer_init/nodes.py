"""Pre-training, stage 2: the hash layer learns to classify on frozen features (Algorithm 1)."""

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from deephash_pipeline.grid import Cell
from deephash_pipeline.hashing import Encoder, LearnedHashLayer
from deephash_pipeline.networks import HashLayer, HashLayerParameters, HashSoftmaxNetwork, initialise
from deephash_pipeline.pipelines.experiment import ExperimentParameters, flat_configuration
from deephash_pipeline.randomness import derive_seed
from deephash_pipeline.training import (
    ArrayInputs,
    CheckpointFolder,
    CrossEntropy,
    TrainingParameters,
    first_batch,
    resolve_device,
    train,
)


class HashLayerInitParameters(BaseModel):
    """Stage 2: how to train the hash layer under a softmax layer, on z."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    training: TrainingParameters


def initialise_hash_layer(
    training_z: NDArray[np.float32],
    training_labels: NDArray[np.int64],
    class_names: list[str],
    cell: Cell,
    parameters: HashLayerInitParameters,
    experiment: ExperimentParameters,
    checkpoints: CheckpointFolder | None = None,
) -> tuple[dict[str, Tensor], Encoder, pd.DataFrame]:
    """Train z -> W -> tanh -> softmax on the class labels and keep W.

    Returns:
        W as ``weight`` of shape (code_length, z_dimension), the encoder it amounts to, and a row of figures an epoch.
    """
    device = resolve_device(experiment.device)
    seed = derive_seed(experiment.seed, "pre-training, stage 2", cell.bits)
    hash_layer = HashLayer(training_z.shape[1], cell.bits, HashLayerParameters(), derive_seed(seed, "hash layer"))
    hash_layer.fit_scale(torch.from_numpy(training_z[first_batch(len(training_z), parameters.training, seed)]))
    network = HashSoftmaxNetwork(hash_layer, len(class_names))
    initialise(network.softmax, derive_seed(seed, "weights"))
    history = train(
        network,
        CrossEntropy(),
        ArrayInputs(training_z, device),
        training_labels,
        parameters.training,
        seed,
        device,
        description=cell.namespace,
        checkpoints=checkpoints,
        configuration=flat_configuration(experiment, parameters),
    )
    hash_layer.cpu()
    table = pd.DataFrame(history).assign(**cell.model_dump(), stage="hash_layer_initialisation")
    return {"weight": hash_layer.weight.detach()}, hash_layer_encoder(hash_layer), table


def hash_layer_encoder(hash_layer: HashLayer) -> Encoder:
    """Reduce a trained hash layer to what encoding needs."""
    code = hash_layer.linear_code()
    arrays = {"projection": code.projection.numpy(), "threshold": code.threshold.numpy()}
    return LearnedHashLayer.from_arrays(len(code.threshold), arrays)
