"""Pre-training, stage 1: the network learns to classify (Algorithm 1 of the paper)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.deephash.experiment import ClassifierRun, Experiment
from deephash_pipeline.deephash.features import FeatureExtractor, usual_runtime
from deephash_pipeline.deephash.pretraining_parameters import PreTrainingParameters
from deephash_pipeline.deephash.training_set import LabelledImages, TrainingSet
from deephash_pipeline.deephash.trials import choice_of_trials, choose_pretraining
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.images.sources.collection import require_labels
from deephash_pipeline.networks import SoftmaxNetwork, initialise
from deephash_pipeline.training import LabelledInputs, classification_objective, outputs_in_blocks, train

STAGE = "softmax_pre_training"
NO_HISTORY = pd.DataFrame({"epoch": pd.Series(dtype=int), "loss": pd.Series(dtype=float)})
"""Of a trunk that is not trained."""


class PreTrained(NamedTuple):
    """What stage 1 leaves.

    Attributes:
        trunk: state of the trunk.
        softmax: ``weight`` (classes, z_dimension) and ``bias`` (classes,) of the softmax layer.
        history: a row for each epoch.
        chosen_by_trials: see `choice_of_trials`; empty without trials.

    Example:
        >>> import torch
        >>> softmax = {"weight": torch.zeros(10, 500), "bias": torch.zeros(10)}
        >>> PreTrained({}, softmax, pd.DataFrame({"epoch": [1], "loss": [2.3]})).softmax["bias"].shape
        torch.Size([10])
    """

    trunk: dict[str, Tensor]
    softmax: dict[str, Tensor]
    history: pd.DataFrame
    chosen_by_trials: Mapping[str, float] = MappingProxyType({})


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

    Nothing is trained if the experiment's trunk is frozen: then there is no softmax layer, and no history.

    Args:
        training_set: images that are learned from.
        validation_set: images whose accuracy, or that of a sample as large as the training set, is reported after each
            epoch, unless it is empty or of other classes.
        parameters: training and augmentation.
        run: network, seed, device, checkpoints.

    Raises:
        InputError: images that do not fit the network or are of one class alone, and what
            `deephash_pipeline.training.train` raises.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> from deephash_pipeline.training import TrainingParameters
        >>> digits = load_digits().images[:32, np.newaxis].astype(np.uint8)
        >>> digits = np.pad(digits, ((0, 0), (0, 0), (10, 10), (10, 10)))
        >>> labels, statistics = load_digits().target[:32], {"mean": [0.02], "standard_deviation": [0.02]}
        >>> training_set = TrainingSet(digits, labels, statistics, list("0123456789"))
        >>> training = TrainingParameters(epochs=1, batch_size=16, learning_rate=0.01)
        >>> experiment = Experiment(benchmark="digits", network="lenet", seed=0, device="cpu")
        >>> run, parameters = ClassifierRun(experiment), PreTrainingParameters(training=training)
        >>> made = pretrain(training_set, training_set, parameters, run)
        >>> made.softmax["weight"].shape, list(made.history.columns)[:3]
        (torch.Size([10, 500]), ['epoch', 'learning_rate', 'loss'])
    """
    chosen: dict[str, float] = {}
    if parameters.trials and not run.experiment.trunk.frozen:
        usual, parameters = parameters, choose_pretraining(training_set, parameters, run, pretrain)
        chosen = choice_of_trials(usual, parameters)
    experiment, device = run.experiment, run.device
    seed = derive_seed(experiment.seed, "pre-training, stage 1")
    trunk = experiment.trunk_for(training_set.images.shape[1:])
    if experiment.trunk.frozen:
        initialise(trunk, seed, pretrained=True)
        return PreTrained(trunk.state_dict(), {}, run.history(NO_HISTORY, STAGE), chosen)
    require_labels(training_set.labels, run.name)
    network = SoftmaxNetwork(trunk, len(training_set.class_names))
    initialise(network, derive_seed(seed, "weights"), experiment.trunk.learned_elsewhere)
    statistics, size = training_set.statistics, trunk.image_size
    # Of more validation than training images every so-manyth: watching should not cost more than training.
    watched = slice(None, None, -(-len(validation_set.labels) // len(training_set.labels)) or 1)
    validation_labels = validation_set.labels[watched]
    validation = ImageInputs(validation_set.images[watched], statistics, device, size=size)
    # No classifier can be right about classes it was not shown, so there its accuracy would say nothing.
    known_classes = len(validation) > 0 and np.isin(validation_labels, training_set.labels).all()
    inputs = ImageInputs(training_set.images, statistics, device, parameters.augmentation, size)
    after_epoch = ValidationAccuracy(network, validation, validation_labels) if known_classes else None
    history = train(
        network,
        classification_objective(training_set.labels, parameters.label_smoothing),
        LabelledInputs(inputs, training_set.labels),
        experiment.training(parameters.training),
        run.engine_run(parameters, seed, after_epoch),
    )
    network.cpu()
    told = run.history(history, STAGE)
    return PreTrained(network.trunk.state_dict(), network.softmax.state_dict(), told, chosen)


def extract_features(
    images: NDArray[np.uint8],
    statistics: Mapping[str, list[float]],
    trunk_weights: Mapping[str, Tensor],
    experiment: Experiment,
) -> NDArray[np.float32]:
    """Compute z = phi(x), the responses below the hash layer, without augmentation; of large images, of the centre.

    Of a frozen trunk ONNX Runtime computes them where it can, in half the time.

    Args:
        images: uint8 of shape (n, channels, height, width).
        statistics: pixel statistics of the training images.
        trunk_weights: state of the trunk.
        experiment: network and device.

    Returns:
        float32 of shape (n, z_dimension).

    Example:
        >>> experiment = Experiment(benchmark="digits", network="lenet", seed=0, device="cpu")
        >>> weights = experiment.trunk_for((1, 28, 28)).state_dict()
        >>> statistics = {"mean": [0.5], "standard_deviation": [0.25]}
        >>> extract_features(np.zeros((2, 1, 28, 28), dtype=np.uint8), statistics, weights, experiment).shape
        (2, 500)
    """
    trunk, device = experiment.trunk_for(images.shape[1:]), experiment.torch_device
    trunk.load_state_dict(dict(trunk_weights))
    runtime = usual_runtime(device) if experiment.trunk.frozen else "torch"
    return FeatureExtractor(trunk.eval(), statistics, device, runtime).prepared()(images)
