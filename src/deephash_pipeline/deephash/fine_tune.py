"""Simultaneous fine-tuning: all layers on one loss, the exponentiated loss Q (Algorithm 1) or a rival's."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.deephash.collapse import warn_of_true_loss
from deephash_pipeline.deephash.experiment import Run
from deephash_pipeline.deephash.fine_tuning_parameters import FineTuningParameters
from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.deephash.initialise import hash_layer_encoder
from deephash_pipeline.deephash.pretrain import extract_features
from deephash_pipeline.deephash.training_set import TrainingSet
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.images.sources.collection import require_labels
from deephash_pipeline.losses import LOSSES, HashingLoss, SimilarityBits, SimilarityParameters, build_loss
from deephash_pipeline.losses.labels import number_of_classes
from deephash_pipeline.networks import ClassificationHead, HashLayer, HashNetwork, build_hash_layer, initialise
from deephash_pipeline.training import ArrayInputs, LabelledInputs, first_batch, train


class PreTrainedWeights(NamedTuple):
    """Where fine-tuning starts: the trunk of stage 1, the hash layer of stage 2, and the softmax layer of stage 1.

    The last is not trained any further; without it images are not compared by their logits. Where `z` of the training
    images is at hand, float32 (n, z_dimension), it is not computed once more.

    Example:
        >>> start = PreTrainedWeights(trunk={}, hash_layer={"weight": torch.zeros(48, 500)})
        >>> dict(start.softmax)
        {}
    """

    trunk: Mapping[str, Tensor]
    hash_layer: Mapping[str, Tensor]
    softmax: Mapping[str, Tensor] = MappingProxyType({})
    z: NDArray[np.float32] | None = None


class FineTuned(NamedTuple):
    """What fine-tuning leaves.

    Attributes:
        hasher: images in, codes out.
        history: a row for each epoch.

    Example:
        >>> from deephash_pipeline import ImageHasher
        >>> FineTuned(ImageHasher.pretrained("digits-48"), pd.DataFrame({"epoch": [1]})).hasher.code_length
        48
    """

    hasher: ImageHasher
    history: pd.DataFrame


def fine_tune(
    training_set: TrainingSet,
    parameters: FineTuningParameters,
    run: Run,
    start: PreTrainedWeights | None = None,
    after_epoch: Callable[[HashNetwork], dict[str, float]] | None = None,
) -> FineTuned:
    """Train all layers on the loss that the parameters name.

    Args:
        training_set: images that are learned from.
        parameters: hash layer, loss, training and augmentation.
        run: network, code length, seed, device, checkpoints.
        start: weights of pre-training; None for random weights everywhere.
        after_epoch: function that gives more metrics for the history, of the network as it is then; never measured on
            queries.

    Raises:
        InputError: images that do not fit the network or are of one class alone, and what
            `deephash_pipeline.training.train` raises.

    Example:
        >>> from deephash_pipeline.deephash import Experiment
        >>> from deephash_pipeline.common.cell import Cell
        >>> from sklearn.datasets import load_digits
        >>> from deephash_pipeline.training import TrainingParameters
        >>> digits = load_digits().images[:32, np.newaxis].astype(np.uint8)
        >>> digits = np.pad(digits, ((0, 0), (0, 0), (10, 10), (10, 10)))
        >>> labels, statistics = load_digits().target[:32], {"mean": [0.02], "standard_deviation": [0.02]}
        >>> training_set = TrainingSet(digits, labels, statistics, list("0123456789"))
        >>> training = TrainingParameters(epochs=1, batch_size=16, learning_rate=0.01)
        >>> experiment = Experiment(benchmark="digits", network="lenet", seed=0, device="cpu")
        >>> run = Run(experiment, Cell(method="deephash_random_start", code_length=12))
        >>> tuned = fine_tune(training_set, FineTuningParameters(training=training), run)
        >>> tuned.hasher.encode(digits).shape
        (32, 2)
    """
    require_labels(training_set.labels, run.name)
    network = build_network(training_set, parameters, run, start)
    trunk, inputs = network.trunk, inputs_of(network, training_set, parameters, run, start)
    if isinstance(inputs, ArrayInputs):
        network.add_module("trunk", nn.Identity())
    if start is None or parameters.initial_hash_layer == "random":
        fit_hash_layer(network, inputs, parameters, run)
    else:
        network.hash_layer.load_state_dict(dict(start.hash_layer), strict=False)
    objective = build_objective(training_set, parameters, run, start)
    measured = None if after_epoch is None else partial(measure_with_trunk, network, trunk, after_epoch)
    history = train(
        network,
        objective,
        LabelledInputs(inputs, training_set.labels),
        run.experiment.training(parameters.training),
        run.engine_run(parameters, seed_of(run), measured),
    )
    network.cpu()
    warn_of_true_loss([epoch.get("true_loss", 0.0) for epoch in history], run)
    hasher = ImageHasher.assemble(trunk.cpu(), hash_layer_encoder(network.hash_layer), training_set, run)
    return FineTuned(hasher, run.history(history, "fine_tuning"))


def measure_with_trunk(
    network: HashNetwork, trunk: nn.Module, measure: Callable[[HashNetwork], dict[str, float]]
) -> dict[str, float]:
    """Measure a network on images, also one that trains on z and has its trunk elsewhere meanwhile.

    Example:
        >>> from deephash_pipeline.networks import HashLayerParameters, build_trunk
        >>> hash_layer = build_hash_layer(500, 12, HashLayerParameters(), seed=0)
        >>> network, trunk = HashNetwork(nn.Identity(), hash_layer), build_trunk("lenet")
        >>> measure_with_trunk(network, trunk, lambda whole: {"size": whole.trunk.image_size})
        {'size': (28, 28)}
    """
    trained = network.trunk
    network.add_module("trunk", trunk.to(next(network.hash_layer.parameters()).device).eval())
    try:
        return measure(network)
    finally:
        network.add_module("trunk", trained)


def seed_of(run: Run) -> int:
    """Return the seed from which all draws of a run derive: of weights, of batches, and those of the loss.

    Example:
        >>> from deephash_pipeline.deephash import Experiment
        >>> from deephash_pipeline.common.cell import Cell
        >>> experiment = Experiment(benchmark="digits", network="lenet", seed=42)
        >>> runs = [Run(experiment, Cell(method="deephash", code_length=bits)) for bits in (12, 48)]
        >>> seed_of(runs[0]) == seed_of(runs[1])
        False
    """
    return derive_seed(run.experiment.seed, "fine-tuning", run.code_length)


def build_network(
    training_set: TrainingSet, parameters: FineTuningParameters, run: Run, start: PreTrainedWeights | None = None
) -> HashNetwork:
    """Trunk, hash layer and what layer the loss wants besides, with fresh random weights but for a trunk's start."""
    trunk = run.experiment.trunk_for(training_set.images.shape[1:])
    initialise(trunk, derive_seed(seed_of(run), "weights"))
    if start is not None:
        trunk.load_state_dict(dict(start.trunk))
    loss = LOSSES[parameters.loss.name]
    learned = start is not None and run.experiment.trunk.frozen
    frozen = learned or parameters.frozen_trunk or loss.reads_features
    hash_layer, classifier = build_layers(trunk.z_dimension, training_set.labels, parameters, run)
    return HashNetwork(trunk, hash_layer, classifier, frozen, loss.reads_features)


def build_layers(
    z_dimension: int, labels: NDArray[np.int64] | NDArray[np.uint8], parameters: FineTuningParameters, run: Run
) -> tuple[HashLayer, ClassificationHead | None]:
    """Draw what lies above the trunk: the hash layer, and the classification head of a loss that has one.

    Args:
        z_dimension: length of z.
        labels: labels of the training set, int64 (n,) or uint8 (n, classes).
        parameters: hash layer and loss.
        run: code length and seed.
    """
    seed, reads = seed_of(run), LOSSES[parameters.loss.name].classification_head
    hash_layer = build_hash_layer(z_dimension, run.code_length, parameters.hash_layer, derive_seed(seed, "hash layer"))
    if reads is None:
        return hash_layer, None
    width = z_dimension if reads == "z" else run.code_length
    classifier = ClassificationHead(reads, width, number_of_classes(labels))
    initialise(classifier, derive_seed(seed, "classifier"))
    return hash_layer, classifier


def inputs_of(
    network: HashNetwork,
    training_set: TrainingSet,
    parameters: FineTuningParameters,
    run: Run,
    start: PreTrainedWeights | None,
) -> ImageInputs | ArrayInputs:
    """Give what the network trains on: images, or their z where the trunk would always give the same."""
    size = network.trunk.image_size
    same = not parameters.augmentation.changes and training_set.images.shape[2:] == size
    if network.frozen_trunk and same and start is not None and start.z is not None:
        return ArrayInputs(start.z, run.device)
    return ImageInputs(training_set.images, training_set.statistics, run.device, parameters.augmentation, size)


@torch.no_grad()
def fit_hash_layer(
    network: HashNetwork, inputs: ImageInputs | ArrayInputs, parameters: FineTuningParameters, run: Run
) -> None:
    """Scale random weights of the hash layer by the images of the first batch, as they are."""
    first = first_batch(len(inputs), parameters.training, seed_of(run))
    # Dropout would draw without a counter.
    network.to(run.device).eval()
    for layer in network.trunk.modules():
        # Normalised by the batch, as training will do it: running statistics of fresh weights say nothing yet.
        if isinstance(layer, nn.BatchNorm2d) and not network.frozen_trunk:
            layer.train()
    chunk = parameters.training.chunk_size or len(first)
    z = [network.trunk(inputs.batch(first[start : start + chunk])) for start in range(0, len(first), chunk)]
    network.hash_layer.fit_scale(torch.cat(z))


def build_objective(
    training_set: TrainingSet, parameters: FineTuningParameters, run: Run, start: PreTrainedWeights | None
) -> HashingLoss | SimilarityBits:
    """Make the loss that the parameters name, of all bits or of those that keep no similarities."""
    seed, similarity = derive_seed(seed_of(run), "loss"), parameters.similarity
    bits = similarity.bits_of(run.code_length)
    loss = build_loss(parameters.loss, run.code_length - bits, training_set.labels, seed)
    if not bits:
        return loss
    if start is None or (similarity.of == "logits" and not start.softmax):
        missing = "pre-training" if start is None else "the softmax layer of pre-training"
        raise InputError(f"{run.name}: `similarity` compares images by {missing}, and there is none: set `share` to 0")
    features = torch.from_numpy(compared_features(training_set, similarity, run, start))
    return SimilarityBits(loss, features, bits, similarity.weight)


def compared_features(
    training_set: TrainingSet, similarity: SimilarityParameters, run: Run, start: PreTrainedWeights
) -> NDArray[np.float32]:
    """Compute z of the training images before fine-tuning, or their logits for the classes there are: (n, ...)."""
    z = start.z
    if z is None:
        z = extract_features(training_set.images, training_set.statistics, start.trunk, run.experiment)
    if similarity.of == "z":
        return z
    labels = training_set.labels
    trained = labels.any(0) if labels.ndim == 2 else np.unique(labels)
    weight, bias = (start.softmax[name].cpu().numpy()[trained] for name in ("weight", "bias"))
    logits: NDArray[np.float32] = z @ weight.T + bias
    return logits
