"""Pre-training, stage 1: the network learns to classify (Algorithm 1)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.networks import SoftmaxNetwork, initialise
from deephash_pipeline.pipelines.experiment import ExperimentParameters, flat_configuration, trunk_for
from deephash_pipeline.randomness import derive_seed
from deephash_pipeline.training import (
    CheckpointFolder,
    CrossEntropy,
    TrainingParameters,
    outputs_in_blocks,
    resolve_device,
    resolve_devices,
    train_on,
)


class PreTrainingParameters(BaseModel):
    """Stage 1: how to train the trunk under a softmax layer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    training: TrainingParameters
    augmentation: AugmentationParameters = AugmentationParameters()


@dataclass
class ValidationAccuracy:
    """Share of validation images that a network classifies rightly."""

    network: SoftmaxNetwork
    images: ImageInputs
    labels: NDArray[np.int64]

    def __call__(self) -> dict[str, float]:
        """Measure it now."""
        predicted = outputs_in_blocks(self.network, self.images).argmax(axis=1)
        return {"validation_accuracy": float((predicted == self.labels).mean())}


def pre_train(
    training_images: NDArray[np.uint8],
    training_labels: NDArray[np.int64],
    validation_images: NDArray[np.uint8],
    validation_labels: NDArray[np.int64],
    pixel_statistics: Mapping[str, list[float]],
    class_names: list[str],
    parameters: PreTrainingParameters,
    experiment: ExperimentParameters,
    checkpoints: CheckpointFolder | None = None,
) -> tuple[dict[str, Tensor], dict[str, Tensor], pd.DataFrame]:
    """Train trunk and softmax layer on the class labels.

    Returns:
        The trunk's state, the softmax layer's state, and one row of figures for each epoch.
    """
    device = resolve_device(experiment.device)
    seed = derive_seed(experiment.seed, "pre-training, stage 1")
    trunk = trunk_for(training_images, experiment)
    network = SoftmaxNetwork(trunk, len(class_names))
    initialise(network, derive_seed(seed, "weights"), experiment.trunk.pretrained)
    validation = ImageInputs(validation_images, pixel_statistics, device, size=trunk.image_size)
    # No classifier can be right about classes it was not shown, so there its accuracy would say nothing.
    known_classes = len(validation) > 0 and np.isin(validation_labels, training_labels).all()
    training = ImageInputs(training_images, pixel_statistics, device, parameters.augmentation, trunk.image_size)

    history = train_on(
        resolve_devices(experiment.devices, device),
        module=network,
        objective=CrossEntropy(),
        inputs=training,
        labels=training.labels(training_labels),
        parameters=parameters.training,
        seed=seed,
        device=device,
        description="cnn_pretraining",
        after_epoch=ValidationAccuracy(network, validation, validation_labels) if known_classes else None,
        checkpoints=checkpoints,
        configuration=flat_configuration(experiment, parameters),
    )
    network.cpu()
    table = pd.DataFrame(history).assign(method=None, code_length=None, stage="softmax_pre_training")
    return network.trunk.state_dict(), network.softmax.state_dict(), table
