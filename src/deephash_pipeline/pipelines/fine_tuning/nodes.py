"""Simultaneous fine-tuning: all layers on one loss, the exponentiated loss Q (Algorithm 1) or a rival's."""

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, field_validator, model_validator
from torch import Tensor, nn

from deephash_pipeline.grid import Cell
from deephash_pipeline.hashing import Encoder
from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.losses import LOSS_PARAMETERS, LOSSES, LossParameters, build_loss
from deephash_pipeline.networks import (
    ClassificationHead,
    HashLayerParameters,
    HashNetwork,
    build_hash_layer,
    initialise,
)
from deephash_pipeline.pipelines.encoding import encode_z
from deephash_pipeline.pipelines.experiment import ExperimentParameters, flat_configuration, trunk_for
from deephash_pipeline.pipelines.feature_extraction.nodes import extract_z
from deephash_pipeline.pipelines.hash_layer_init.nodes import hash_layer_encoder
from deephash_pipeline.randomness import derive_seed
from deephash_pipeline.retrieval import CodeSets
from deephash_pipeline.training import (
    CheckpointFolder,
    TrainingParameters,
    first_batch,
    resolve_device,
    resolve_devices,
    train_on,
)


class FineTuningParameters(BaseModel):
    """How to train trunk and hash layer together. Every departure from the paper stands in one of these blocks.

    Attributes:
        initial_hash_layer: for methods that start from pre-training, what goes onto its trunk: the hash layer of stage
            2, or one of ``random`` weights, for losses that want other bits than stage 2 has found. A divided hash
            layer is always random.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    hash_layer: HashLayerParameters = HashLayerParameters()
    initial_hash_layer: Literal["pre_trained", "random"] = "pre_trained"
    loss: LossParameters = LOSS_PARAMETERS["exponentiated"]()
    training: TrainingParameters
    augmentation: AugmentationParameters = AugmentationParameters()

    @field_validator("loss", mode="before")
    @classmethod
    def _without_a_name_the_loss_is_the_papers(cls, loss: Any) -> Any:
        return {"name": "exponentiated", **loss} if isinstance(loss, Mapping) else loss

    @model_validator(mode="after")
    def _a_divided_hash_layer_is_random(self) -> Self:
        if self.hash_layer.features_per_bit and self.initial_hash_layer != "random":
            raise ValueError("a hash layer with `features_per_bit` needs `initial_hash_layer: random`")
        return self


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
    """Fine-tune from pre-training: the trunk of stage 1, and the hash layer of stage 2 or a random one.

    Returns:
        The trunk's state, the encoder the hash layer amounts to, and one row of figures for each epoch.
    """
    network = build_network(training_images, training_labels, cell, parameters, experiment)
    network.trunk.load_state_dict(trunk_weights)
    if parameters.initial_hash_layer == "random":
        fit_hash_layer(network, training_images, pixel_statistics, cell, parameters, experiment)
    else:
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
    network = build_network(training_images, training_labels, cell, parameters, experiment)
    fit_hash_layer(network, training_images, pixel_statistics, cell, parameters, experiment)
    return train_on_hashing_loss(
        network, training_images, training_labels, pixel_statistics, cell, parameters, experiment, checkpoints
    )


def seed_of(cell: Cell, experiment: ExperimentParameters) -> int:
    """Return the seed from which all draws of a cell derive: of weights, of batches, and those of the loss."""
    return derive_seed(experiment.seed, "fine-tuning", cell.bits)


def count_classes(labels: NDArray[np.int64]) -> int:
    """Return the number of classes, which are numbered from 0."""
    return int(labels.max()) + 1


def build_network(
    training_images: NDArray[np.uint8],
    training_labels: NDArray[np.int64],
    cell: Cell,
    parameters: FineTuningParameters,
    experiment: ExperimentParameters,
) -> HashNetwork:
    """Trunk, hash layer and what layer the loss wants besides, with fresh random weights."""
    seed = seed_of(cell, experiment)
    trunk = trunk_for(training_images, experiment)
    initialise(trunk, derive_seed(seed, "weights"))
    hash_layer = build_hash_layer(trunk.z_dimension, cell.bits, parameters.hash_layer, derive_seed(seed, "hash layer"))
    reads = LOSSES[parameters.loss.name].classification_head
    if reads is None:
        return HashNetwork(trunk, hash_layer)
    classifier = ClassificationHead(
        reads, trunk.z_dimension if reads == "z" else cell.bits, count_classes(training_labels)
    )
    initialise(classifier, derive_seed(seed, "classifier"))
    return HashNetwork(trunk, hash_layer, classifier)


@torch.no_grad()
def fit_hash_layer(
    network: HashNetwork,
    training_images: NDArray[np.uint8],
    pixel_statistics: Mapping[str, list[float]],
    cell: Cell,
    parameters: FineTuningParameters,
    experiment: ExperimentParameters,
) -> None:
    """Scale random weights of the hash layer by the images of the first batch, as they are."""
    device = resolve_device(experiment.device)
    views = parameters.augmentation.expand
    drawn = first_batch(views * len(training_images), parameters.training, seed_of(cell, experiment)) // views
    first = ImageInputs(training_images[drawn], pixel_statistics, device, size=network.trunk.image_size)
    # Dropout would draw without an address.
    network.to(device).eval()
    for layer in network.trunk.modules():
        # Normalised by the batch, as training will do it: running statistics of fresh weights say nothing yet.
        if isinstance(layer, nn.BatchNorm2d):
            layer.train()
    network.hash_layer.fit_scale(network.trunk(first.batch(np.arange(len(first)))))


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
    """Train all layers of `network` on the loss that the parameters name."""
    device = resolve_device(experiment.device)
    seed = seed_of(cell, experiment)
    size = network.trunk.image_size
    inputs = ImageInputs(training_images, pixel_statistics, device, parameters.augmentation, size)
    history = train_on(
        resolve_devices(experiment.devices, device),
        module=network,
        objective=build_loss(parameters.loss, cell.bits, training_labels, derive_seed(seed, "loss")),
        inputs=inputs,
        labels=inputs.labels(training_labels),
        parameters=parameters.training,
        seed=seed,
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
