"""Pre-training, stage 1: the network learns to classify (Algorithm 1)."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.networks import SoftmaxNetwork, build_trunk, initialise
from deephash_pipeline.pipelines.experiment import ExperimentParameters
from deephash_pipeline.seeds import derive_seed
from deephash_pipeline.training import CrossEntropy, TrainingParameters, outputs_in_blocks, resolve_device, train


class PreTrainingParameters(BaseModel):
    """Stage 1: how to train the trunk under a softmax layer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    training: TrainingParameters
    augmentation: AugmentationParameters = AugmentationParameters()


def pre_train(
    training_images: NDArray[np.uint8],
    training_labels: NDArray[np.int64],
    validation_images: NDArray[np.uint8],
    validation_labels: NDArray[np.int64],
    pixel_statistics: Mapping[str, list[float]],
    class_names: list[str],
    parameters: PreTrainingParameters,
    experiment: ExperimentParameters,
) -> tuple[dict[str, Tensor], dict[str, Tensor], pd.DataFrame]:
    """Train trunk and softmax layer on the class labels.

    Returns:
        The trunk's state, the softmax layer's state, and one row of figures for each epoch.
    """
    device = resolve_device(experiment.device)
    seed = derive_seed(experiment.seed, "pre-training, stage 1")
    network = SoftmaxNetwork(build_trunk(experiment.network), len(class_names))
    initialise(network, derive_seed(seed, "weights"))
    validation = ImageInputs(validation_images, pixel_statistics, device)

    def validation_accuracy() -> dict[str, float]:
        if not len(validation):
            return {}
        predicted = outputs_in_blocks(network, validation).argmax(axis=1)
        return {"validation_accuracy": float((predicted == validation_labels).mean())}

    history = train(
        network,
        CrossEntropy(),
        ImageInputs(training_images, pixel_statistics, device, parameters.augmentation),
        training_labels,
        parameters.training,
        seed,
        device,
        description="cnn_pretraining",
        after_epoch=validation_accuracy,
    )
    network.cpu()
    table = pd.DataFrame(history).assign(method=None, code_length=None, stage="softmax_pre_training")
    return network.trunk.state_dict(), network.softmax.state_dict(), table
