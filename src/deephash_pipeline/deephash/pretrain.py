"""Pre-training, stage 1: the network learns to classify (Algorithm 1 of the paper)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.deephash.experiment import ClassifierRun, Experiment, StageParameters
from deephash_pipeline.deephash.training_set import LabelledImages, TrainingSet
from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.images.sources.collection import require_labels
from deephash_pipeline.networks import SoftmaxNetwork, initialise
from deephash_pipeline.randomness import derive_seed
from deephash_pipeline.training import classification_objective, outputs_in_blocks, train_on


class PreTrainingParameters(StageParameters):
    """How to train the trunk under a softmax layer."""

    augmentation: AugmentationParameters = AugmentationParameters()


class PreTrained(NamedTuple):
    """What stage 1 leaves.

    Attributes:
        trunk: state of the trunk.
        softmax: ``weight`` (classes, z_dimension) and ``bias`` (classes,) of the softmax layer.
        history: a row for each epoch.
    """

    trunk: dict[str, Tensor]
    softmax: dict[str, Tensor]
    history: pd.DataFrame


@dataclass
class ValidationAccuracy:
    """Share of validation images that a network classifies rightly: of those with several labels, as one of them."""

    network: SoftmaxNetwork
    images: ImageInputs
    labels: NDArray[np.int64] | NDArray[np.uint8]

    def __call__(self) -> dict[str, float]:
        """Measure it now."""
        predicted = outputs_in_blocks(self.network, self.images).argmax(axis=1)
        rows = np.arange(len(predicted))
        right = self.labels[rows, predicted] > 0 if self.labels.ndim == 2 else predicted == self.labels
        return {"validation_accuracy": float(right.mean())}


def pretrain(
    training_set: TrainingSet, validation_set: LabelledImages, parameters: PreTrainingParameters, run: ClassifierRun
) -> PreTrained:
    """Train trunk and softmax layer on the class labels; where images have several, by the sigmoid of each logit.

    Args:
        training_set: what is learned from.
        validation_set: whose accuracy is reported after each epoch, unless it is empty or of other classes.
        parameters: training and augmentation.
        run: network, seed, device, checkpoints.

    Raises:
        InputError: images that do not fit the network or are of one class alone, and what
            `deephash_pipeline.training.train` raises.
    """
    require_labels(training_set.labels, run.name)
    experiment, device = run.experiment, run.device
    seed = derive_seed(experiment.seed, "pre-training, stage 1")
    trunk = experiment.trunk_for(training_set.images.shape[1:])
    network = SoftmaxNetwork(trunk, len(training_set.class_names))
    initialise(network, derive_seed(seed, "weights"), experiment.trunk.pretrained)
    statistics, size = training_set.statistics, trunk.image_size
    validation = ImageInputs(validation_set.images, statistics, device, size=size)
    # No classifier can be right about classes it was not shown, so there its accuracy would say nothing.
    known_classes = len(validation) > 0 and np.isin(validation_set.labels, training_set.labels).all()
    inputs = ImageInputs(training_set.images, statistics, device, parameters.augmentation, size)
    history = train_on(
        run.devices,
        module=network,
        objective=classification_objective(training_set.labels),
        inputs=inputs,
        labels=inputs.labels(training_set.labels),
        parameters=experiment.training(parameters.training),
        seed=seed,
        device=device,
        description=run.name,
        after_epoch=ValidationAccuracy(network, validation, validation_set.labels) if known_classes else None,
        checkpoints=run.checkpoints,
        configuration=run.configuration(parameters),
    )
    network.cpu()
    return PreTrained(network.trunk.state_dict(), network.softmax.state_dict(), pd.DataFrame(history))


def extract_features(
    images: NDArray[np.uint8],
    statistics: Mapping[str, list[float]],
    trunk_weights: Mapping[str, Tensor],
    experiment: Experiment,
) -> NDArray[np.float32]:
    """Compute z = phi(x), the responses below the hash layer, without augmentation; of large images, of the centre.

    Args:
        images: uint8 of shape (n, channels, height, width).
        statistics: of the training images.
        trunk_weights: state of the trunk.
        experiment: network and device.

    Returns:
        float32 of shape (n, z_dimension).
    """
    trunk, device = experiment.trunk_for(images.shape[1:]), experiment.torch_device
    trunk.load_state_dict(dict(trunk_weights))
    if not len(images):
        return np.empty((0, trunk.z_dimension), dtype=np.float32)
    return outputs_in_blocks(trunk.to(device), ImageInputs(images, statistics, device, size=trunk.image_size))
