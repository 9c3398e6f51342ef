"""The paper's method for people without Kedro: fit on labelled images, then encode."""

import logging
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import ValidationError
from sklearn.base import BaseEstimator

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.parameters import faults_in_one_line
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.deephash.experiment import ClassifierRun, Experiment, Run
from deephash_pipeline.deephash.features import PHOTOGRAPHS
from deephash_pipeline.deephash.fine_tune import PreTrainedWeights, fine_tune
from deephash_pipeline.deephash.fine_tuning_parameters import FineTuningParameters
from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.deephash.initialise import HashLayerInitParameters, initialise_hash_layer
from deephash_pipeline.deephash.pretrain import PreTrainingParameters, extract_features, pretrain
from deephash_pipeline.deephash.training_set import LabelledFeatures, LabelledImages, TrainingSet
from deephash_pipeline.hashers.base import DECODED_AT_A_TIME
from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.images.batches import image_batches
from deephash_pipeline.images.decoding.image_files import Channels, checked_size
from deephash_pipeline.images.statistics import pixel_statistics
from deephash_pipeline.losses import LOSS_PARAMETERS
from deephash_pipeline.networks import NETWORKS, HashLayerParameters, usual_input
from deephash_pipeline.retrieval import chance_level, count_distances, mean_average_precision, pack_bits
from deephash_pipeline.retrieval.codes import check_code_length
from deephash_pipeline.training import CheckpointFolder, TrainingParameters
from deephash_pipeline.training.sampling import steps_per_epoch

logger = logging.getLogger(__name__)

SLIGHT = AugmentationParameters(shift_pixels=2, rotation_degrees=10, scale_range=0.1)
"""For digits and other drawn signs; photographs want flips and larger shifts, see conf/cifar10."""

PRETRAINING = PreTrainingParameters(
    training=TrainingParameters(
        epochs=30, batch_size=64, learning_rate=0.025, weight_decay=0.0005, schedule="one_cycle"
    ),
    augmentation=SLIGHT,
)
HASH_LAYER_INIT = HashLayerInitParameters(
    training=TrainingParameters(epochs=20, batch_size=64, learning_rate=0.05, schedule="one_cycle")
)
FINE_TUNING = FineTuningParameters(
    hash_layer=HashLayerParameters(centring=True, scale=3.0),
    loss=LOSS_PARAMETERS["exponentiated"].model_validate({"loss_scale": "unit", "balance_pairs": True}),
    training=TrainingParameters(epochs=10, batch_size=128, learning_rate=0.02, schedule="one_cycle"),
    augmentation=SLIGHT,
)
ON_FEATURES = FINE_TUNING.model_copy(update={"augmentation": AugmentationParameters()})
"""Of a trunk that is not trained: its features are computed once."""

SMALL = 64
"""Pixels of a side up to which ``auto`` takes a network of the paper, from random weights."""
LOOKED_AT = 8
"""Images whose sizes and colours ``auto`` looks at."""
HELD_OUT = 10
"""One image of so many of a class is held out of the training, to measure what was learned."""
LITTLE = 0.1
"""Of the way from chance to a perfect order, below which next to nothing was learned."""


@dataclass(eq=False, repr=False)
class DeepHash(BaseEstimator, ImageHasher):  # type: ignore[misc]
    """Deep hashing after Mu & Liu: two stages of pre-training, then fine-tuning of all layers; an `ImageHasher`.

    The defaults suit digits and drawn signs; recipes for photographs are in the folders of ``conf``.

    Args:
        code_length: bits.
        network: a table of the paper's appendix, such as ``lenet`` (28x28, grey) or ``cifar10_full`` (32x32, colour);
            or a classifier of `torchvision.models`, such as ``resnet18``, or a model of timm, from random weights.
            ``auto`` chooses by the first images: up to 64 pixels ``lenet`` if they are grey and else
            ``cifar10_full``; of larger ones the hash layer alone is learned, on the features of `PHOTOGRAPHS`, which
            the extra ``photos`` brings.
        pretraining: parameters of stage 1; None for the default.
        hash_layer_init: parameters of stage 2; None for the default.
        fine_tuning: parameters of the training of all layers; None for the default.
        effort: share of the epochs that are made, 0.1 for a quick look.
        random_state: seed from which every random draw derives.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        image_size: height and width to which images are resized for networks of torchvision and timm; None for what
            their pretrained weights were made for. Those of the paper have their own.
        checkpoints: folder where a training that is stopped saves itself, and from which the same `fit` goes on.

    Attributes:
        validation_map_: mean average precision of a tenth of each class's images, drawn by `random_state` and held out
            of the training, as queries of the rest; NaN where the classes have fewer than ten.
        validation_chance_: mAP that equal codes would have, see `chance_level`.
        history_: course of the fine-tuning, epoch by epoch.

    Raises:
        InputError: a parameter, or an image, is refused.

    >>> from deephash_pipeline import DeepHash
    >>> from sklearn.datasets import load_digits
    >>> digits = load_digits()
    >>> images = (digits.images * 15).astype("uint8")
    >>> hasher = DeepHash(code_length=24, effort=0.05).fit(images[:300], digits.target[:300])
    >>> hasher.encode(images[300:310]).shape
    (10, 3)
    """

    # Set by the caller here, where an `ImageHasher` reads it from its file.
    code_length: int = 48
    network: str = "auto"
    _: KW_ONLY
    pretraining: PreTrainingParameters | None = None
    hash_layer_init: HashLayerInitParameters | None = None
    fine_tuning: FineTuningParameters | None = None
    effort: float = 1.0
    random_state: int = 0
    device: str = "auto"
    image_size: tuple[int, int] | None = None
    checkpoints: str | Path | None = None

    def fit(self, images: Any, labels: Any) -> Self:
        """Learn from images and one class for each.

        Args:
            images: images, as `ImageHasher.encode` takes them.
            labels: whole numbers or names, shape (n,).

        Raises:
            InputError: images and labels of different number, fewer than two classes, or fewer images than one batch.
        """
        if isinstance(images, Iterator):
            images = list(images)
        network = usual_network(images) if self.network == "auto" else self.network
        learned = {"pretrained": True, "frozen": True} if network != self.network and network not in NETWORKS else {}
        settings = {"seed": self.random_state, "device": self.device, "effort": self.effort, "trunk": learned}
        try:
            experiment = Experiment.model_validate({"benchmark": "images", "network": network, **settings})
        except ValidationError as error:
            raise InputError(f"DeepHash: {faults_in_one_line(error).replace('seed:', 'random_state:')}") from error
        check_code_length(self.code_length)
        training_set, held_out = self._training_set(images, labels, experiment)
        cell = Cell(method="deephash", code_length=self.code_length)
        pretraining, hash_layer_init, fine_tuning = self._stages(len(training_set.labels), experiment.trunk.frozen)

        def checkpoints(stage: str) -> CheckpointFolder | None:
            return None if self.checkpoints is None else CheckpointFolder(Path(self.checkpoints) / stage, 30)

        nothing = LabelledImages(training_set.images[:0], training_set.labels[:0])
        classifier_run = ClassifierRun(experiment, checkpoints("pretraining"))
        stage_1 = pretrain(training_set, nothing, pretraining, classifier_run)
        z = extract_features(training_set.images, training_set.statistics, stage_1.trunk, experiment)
        stage_2 = initialise_hash_layer(
            LabelledFeatures(z, training_set.labels, training_set.class_names),
            hash_layer_init,
            Run(experiment, cell, checkpoints("hash_layer_init")),
        )
        start = PreTrainedWeights(stage_1.trunk, stage_2.weights, stage_1.softmax, z)
        run = Run(experiment, cell, checkpoints("fine_tuning"))
        tuned = fine_tune(training_set, fine_tuning, run, start)
        trunk, encoder, description = tuned.hasher._fitted()
        self._compose(trunk, encoder, description, self.device)
        self.history_ = tuned.history
        codes = pack_bits(encoder.transform(z)) if experiment.trunk.frozen else self.encode(training_set.images)
        self._validate(codes, training_set, held_out)
        return self

    def _stages(self, size: int, frozen: bool) -> list[Any]:
        """Give the parameters of the three stages; usual ones have no larger batches than there are images."""
        stages: list[Any] = []
        for name, usual in (
            ("pretraining", PRETRAINING),
            ("hash_layer_init", HASH_LAYER_INIT),
            ("fine_tuning", ON_FEATURES if frozen else FINE_TUNING),
        ):
            given, training = getattr(self, name), usual.training
            if given is None:
                fitting = training.model_copy(update={"batch_size": min(training.batch_size, size)})
                given = usual.model_copy(update={"training": fitting})
            if not isinstance(given, type(usual)):
                raise InputError(f"DeepHash: pass {name} as {type(usual).__name__}, not {type(given).__name__}")
            # Before any stage is trained.
            steps_per_epoch(size, given.training, name)
            stages.append(given)
        return stages

    def _validate(self, codes: NDArray[np.uint8], database: LabelledImages, queries: LabelledImages) -> None:
        self.validation_map_ = self.validation_chance_ = float("nan")
        if not len(queries.labels):
            logger.info("there are too few images of each class to hold some out: nothing says what was learned")
            return
        found = count_distances(self.encode(queries.images), queries.labels, codes, database.labels, self.code_length)
        self.validation_map_ = mean_average_precision(found)
        self.validation_chance_ = chance_level(queries.labels, database.labels)
        little = self.validation_map_ - self.validation_chance_ < LITTLE * (1 - self.validation_chance_)
        logger.log(
            logging.WARNING if little else logging.INFO,
            "mAP of %d images held out: %.3f, by chance %.3f%s",
            len(queries.labels),
            self.validation_map_,
            self.validation_chance_,
            "; it has learned little: raise effort, or give more images" if little else "",
        )

    def _training_set(self, images: Any, labels: Any, experiment: Experiment) -> tuple[TrainingSet, LabelledImages]:
        """Decode the images at the network's size, number the classes, and hold some of each out."""
        if isinstance(images, np.ndarray) and images.ndim == 2:
            raise InputError(f"images of shape {images.shape} are flat: pass (n, height, width), or with 3 channels")
        names, numbers = _numbered(labels)
        if len(names) < 2:
            raise InputError("DeepHash learns from classes: pass labels of at least two")
        batches = image_batches(images, self._image_shape(experiment.network), DECODED_AT_A_TIME)
        decoded = [batch.pixels for batch in batches]
        if not decoded:
            raise InputError("there are no images to learn from: pass at least one batch")
        array = np.concatenate(decoded)
        if len(array) != len(numbers):
            raise InputError(f"{len(array)} images but {len(numbers)} labels: pass one class for each image")
        held_out = np.zeros(len(array), bool)
        # Images with several labels are drawn as if all were of one class.
        classes = numbers if numbers.ndim == 1 else np.zeros(len(array), np.int64)
        for number in np.unique(classes).tolist():
            rows = np.flatnonzero(classes == number)
            seed = derive_seed(self.random_state, f"validation images, class {number}")
            held_out[np.random.default_rng(seed).permutation(rows)[: len(rows) // HELD_OUT]] = True
        array, validation = array[~held_out], LabelledImages(array[held_out], numbers[held_out])
        statistics = experiment.usual_statistics or pixel_statistics(array)
        return TrainingSet(array, numbers[~held_out], statistics, names), validation

    def _image_shape(self, network: str) -> tuple[Channels, int, int]:
        if network in NETWORKS:
            channels, height, width = NETWORKS[network][0].output
            return 1 if channels == 1 else 3, height, width
        height, width = checked_size(self.image_size or usual_input(network).size)
        return 3, height, width


def usual_network(images: Any) -> str:
    """Choose a network by the size and the colours of the first images.

    Example:
        >>> usual_network(np.zeros((2, 28, 28), np.uint8)), usual_network(np.eye(96, dtype=np.uint8)[None])
        ('lenet', 'timm/tf_efficientnet_lite0')
    """
    if isinstance(images, np.ndarray) and images.ndim == 3:
        images = images[:, np.newaxis]
    seen = [batch.pixels[0] for batch in islice(image_batches(images, (3,), batch_size=1), LOOKED_AT)]
    if any(max(pixels.shape) > SMALL for pixels in seen):
        return PHOTOGRAPHS
    return "lenet" if all((pixels == pixels[0]).all() for pixels in seen) else "cifar10_full"


def _numbered(given: Any) -> tuple[list[str], NDArray[np.int64] | NDArray[np.uint8]]:
    """Name the classes, and number the labels by them: (n,) of any kind, or multi-hot (n, classes)."""
    try:
        labels = np.asarray(given)
    except ValueError as error:
        raise InputError("labels are of several lengths: pass one class for each image, or 0 and 1") from error
    if labels.ndim not in (1, 2):
        found = f"have the shape {labels.shape}" if labels.ndim else f"are no array ({type(given).__name__})"
        raise InputError(f"labels {found}: pass one class for each image, or 0 and 1 by class")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim == 1:
        if pd.isna(labels).any():
            raise InputError("some labels are missing (None or NaN): pass the class of every image")
        if labels.dtype.kind == "f" and (labels % 1).any():
            raise InputError("labels contain fractions: pass the class of every image")
        try:
            names, numbers = np.unique(labels, return_inverse=True)
        except TypeError as error:
            raise InputError(f"labels are of several kinds ({error}): pass strings alone, or integers") from error
        return [str(name) for name in names], numbers.astype(np.int64)
    if not np.isin(labels, (0, 1)).all():
        raise InputError("labels of several columns are 0 or 1: pass 1 for each label that an image has")
    return [str(column) for column in getattr(given, "columns", range(labels.shape[1]))], labels.astype(np.uint8)
