"""Simultaneous fine-tuning: all layers on the exponentiated loss Q alone (Algorithm 1)."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from deephash_pipeline.grid import Cell
from deephash_pipeline.hashing import Encoder
from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.losses import ExponentiatedLoss, ExponentiatedLossParameters
from deephash_pipeline.networks import HashLayer, HashLayerParameters, HashNetwork, build_trunk, initialise
from deephash_pipeline.pipelines.encoding import encode_z
from deephash_pipeline.pipelines.experiment import ExperimentParameters, flat_configuration
from deephash_pipeline.pipelines.feature_extraction.nodes import extract_z
from deephash_pipeline.pipelines.hash_layer_init.nodes import hash_layer_encoder
from deephash_pipeline.retrieval import CodeSets
from deephash_pipeline.seeds import derive_seed
from deephash_pipeline.training import CheckpointFolder, TrainingParameters, resolve_device, resolve_devices, train_on


class FineTuningParameters(BaseModel):
    """How to train trunk and hash layer together. Every departure from the paper stands in one of these blocks."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hash_layer: HashLayerParameters = HashLayerParameters()
    loss: ExponentiatedLossParameters = ExponentiatedLossParameters()
    training: TrainingParameters
    augmentation: AugmentationParameters = AugmentationParameters()


def fine_tune(
    training_images: NDArray[np.uint8],
    training_labels: NDArray[np.int64],
    pixel_statistics: Mapping[str, list[float]],
    trunk_weights: Mapping[str, Tensor],
    initial_hash_layer: Mapping[str, Tensor],
    cell: Cell,
    parameters: FineTuningParameters,
    experiment: ExperimentParameters,
    checkpoints: CheckpointFolder | None = None,
) -> tuple[dict[str, Tensor], Encoder, pd.DataFrame]:
    """Fine-tune from both pre-training stages.

    Returns:
        The trunk's state, the encoder the hash layer amounts to, and one row of figures for each epoch.
    """
    network = build_network(cell, parameters, experiment)
    network.trunk.load_state_dict(trunk_weights)
    network.hash_layer.load_state_dict(initial_hash_layer, strict=False)
    return train_on_hashing_loss(
        network, training_images, training_labels, pixel_statistics, cell, parameters, experiment, checkpoints
    )


def train_from_random_initialisation(
    training_images: NDArray[np.uint8],
    training_labels: NDArray[np.int64],
    pixel_statistics: Mapping[str, list[float]],
    cell: Cell,
    parameters: FineTuningParameters,
    experiment: ExperimentParameters,
    checkpoints: CheckpointFolder | None = None,
) -> tuple[dict[str, Tensor], Encoder, pd.DataFrame]:
    """Train on the hashing loss from random weights, without any pre-training; returns what `fine_tune` does."""
    device = resolve_device(experiment.device)
    network = build_network(cell, parameters, experiment)
    first = ImageInputs(training_images[: parameters.training.batch_size], pixel_statistics, device)
    network.to(device)
    with torch.no_grad():
        network.hash_layer.fit_scale(network.trunk(first.batch(np.arange(len(first)))))
    return train_on_hashing_loss(
        network, training_images, training_labels, pixel_statistics, cell, parameters, experiment, checkpoints
    )


def build_network(cell: Cell, parameters: FineTuningParameters, experiment: ExperimentParameters) -> HashNetwork:
    """Trunk and hash layer with fresh weights."""
    seed = derive_seed(experiment.seed, "fine-tuning", cell.bits)
    trunk = build_trunk(experiment.network)
    initialise(trunk, derive_seed(seed, "weights"))
    hash_layer = HashLayer(trunk.z_dimension, cell.bits, parameters.hash_layer, derive_seed(seed, "hash layer"))
    return HashNetwork(trunk, hash_layer)


def train_on_hashing_loss(
    network: HashNetwork,
    training_images: NDArray[np.uint8],
    training_labels: NDArray[np.int64],
    pixel_statistics: Mapping[str, list[float]],
    cell: Cell,
    parameters: FineTuningParameters,
    experiment: ExperimentParameters,
    checkpoints: CheckpointFolder | None = None,
) -> tuple[dict[str, Tensor], Encoder, pd.DataFrame]:
    """Train all layers of `network` on the exponentiated loss."""
    device = resolve_device(experiment.device)
    history = train_on(
        resolve_devices(experiment.devices, device),
        module=network,
        objective=ExponentiatedLoss(parameters.loss),
        inputs=ImageInputs(training_images, pixel_statistics, device, parameters.augmentation),
        labels=training_labels,
        parameters=parameters.training,
        seed=derive_seed(experiment.seed, "fine-tuning", cell.bits),
        device=device,
        description=cell.namespace,
        checkpoints=checkpoints,
        configuration=flat_configuration(experiment, parameters),
    )
    network.cpu()
    table = pd.DataFrame(history).assign(**cell.model_dump(), stage="fine_tuning")
    return network.trunk.state_dict(), hash_layer_encoder(network.hash_layer), table


def encode_images(
    encoder: Encoder,
    trunk_weights: Mapping[str, Tensor],
    training_images: NDArray[np.uint8],
    validation_images: NDArray[np.uint8],
    query_images: NDArray[np.uint8],
    pixel_statistics: Mapping[str, list[float]],
    experiment: ExperimentParameters,
) -> CodeSets:
    """Hash database, validation set and queries through the cell's own trunk."""
    training_z, validation_z, query_z = (
        extract_z(images, pixel_statistics, trunk_weights, experiment)
        for images in (training_images, validation_images, query_images)
    )
    return encode_z(encoder, training_z, validation_z, query_z)
