"""The paper's method for people without Kedro: fit on labelled images, then encode."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from sklearn.base import BaseEstimator, TransformerMixin

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.own_settings import own_settings
from deephash_pipeline.common.parameters import faults_in_one_line
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.deephash.candidates import NAMES, Candidate, held_out_map, without_fine_tuning
from deephash_pipeline.deephash.experiment import ClassifierRun, Experiment, Run
from deephash_pipeline.deephash.features import PHOTOGRAPHS
from deephash_pipeline.deephash.fine_tune import PreTrainedWeights, fine_tune
from deephash_pipeline.deephash.fine_tuning_parameters import FineTuningParameters
from deephash_pipeline.deephash.given_images import first_images, is_grey, numbered_labels, usual_network, usual_size
from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.deephash.initialise import HashLayerInitParameters, initialise_hash_layer
from deephash_pipeline.deephash.pretrain import extract_features, pretrain
from deephash_pipeline.deephash.pretraining_parameters import PreTrainingParameters
from deephash_pipeline.deephash.recipes import Recipe, recipe_for
from deephash_pipeline.deephash.training_set import LabelledFeatures, LabelledImages, TrainingSet
from deephash_pipeline.deephash.trials import choose_pretraining
from deephash_pipeline.hashers.base import DECODED_AT_A_TIME
from deephash_pipeline.images.batches import image_batches
from deephash_pipeline.images.decoding.image_files import Channels, checked_size
from deephash_pipeline.images.statistics import pixel_statistics
from deephash_pipeline.networks import NETWORKS, SMALL_RESNETS, usual_input
from deephash_pipeline.retrieval import chance_level, count_distances, is_near_chance, mean_average_precision, pack_bits
from deephash_pipeline.retrieval.codes import check_code_length
from deephash_pipeline.training import CheckpointFolder
from deephash_pipeline.training.sampling import steps_per_epoch

logger = logging.getLogger(__name__)

HELD_OUT = 10
"""One image of so many of a class is held out of the training, to measure what was learned."""


@dataclass(eq=False, repr=False)
class DeepHash(TransformerMixin, BaseEstimator, ImageHasher):  # type: ignore[misc]
    """Deep hashing after Mu & Liu: two stages of pre-training, then fine-tuning of all layers; an `ImageHasher`.

    Parameters that are not given are those of `recipe_for`. For a small residual network some short trainings choose
    whether images are mirrored and turned, and the learning rate, see `choose_pretraining`.

    Args:
        code_length: bits.
        network: ``small_resnet`` or ``medium_resnet``, for images of any small size; a table of the paper's appendix,
            such as ``lenet`` (28x28, grey) or ``cifar10_full`` (32x32, colour); or a classifier of
            `torchvision.models`, such as ``resnet18``, or a model of timm, from random weights. ``auto`` chooses by the
            first images: up to 96 pixels ``small_resnet``; of larger ones the hash layer alone is learned, on the
            features of `PHOTOGRAPHS`, which the extra ``photos`` brings.
        pretraining: parameters of stage 1; None for the default.
        hash_layer_init: parameters of stage 2; None for the default.
        fine_tuning: parameters of the training of all layers; None for the default.
        effort: share of the epochs that are made, 0.1 for a quick look.
        random_state: seed from which every random draw derives.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        image_size: height and width to which images are resized. None for about those of the first images where the
            network is a small residual one, and for what its pretrained weights were made for where it is of
            torchvision or timm. Networks of the paper have their own.
        checkpoints: folder where a training that is stopped saves itself, and from which the same `fit` goes on.

    Attributes:
        validation_map_: mean average precision of a tenth of each class's images, drawn by `random_state` and held out
            of the training, as queries of the rest; NaN where the classes have fewer than ten.
        validation_chance_: mAP that equal codes would have, see `chance_level`.
        history_: course of the fine-tuning, epoch by epoch.
        chosen_pretraining_: parameters of stage 1, as they were given or chosen.
        learned_by_: ``deephash``; or ``deephash_pretrained`` or ``itq`` if the codes of pre-training, or those of ITQ
            on its features, were better than the fine-tuned ones on the images held out.

    Raises:
        InputError: a parameter, or an image, is refused.

    >>> from deephash_pipeline import DeepHash
    >>> from sklearn.datasets import load_digits
    >>> digits = load_digits()
    >>> images = (digits.images * 15).astype("uint8")
    >>> hasher = DeepHash(code_length=24, effort=0.05).fit(images[:300], digits.target[:300])
    >>> hasher.encode(images[300:310]).shape, hasher.transform(images[300:310]).shape
    ((10, 3), (10, 24))
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

    @own_settings()
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
        learned = {"pretrained": True, "frozen": True} if network == PHOTOGRAPHS != self.network else {}
        settings = {"seed": self.random_state, "device": self.device, "effort": self.effort, "trunk": learned}
        try:
            experiment = Experiment.model_validate({"benchmark": "images", "network": network, **settings})
        except ValidationError as error:
            raise InputError(f"DeepHash: {faults_in_one_line(error).replace('seed:', 'random_state:')}") from error
        check_code_length(self.code_length)
        training_set, held_out = self._training_set(images, labels, experiment)
        run = Run(experiment, Cell(method="deephash", code_length=self.code_length))
        classifier_run = ClassifierRun(experiment, self._checkpoints("pretraining"))
        recipe = self._recipe(training_set, classifier_run)
        self.chosen_pretraining_ = recipe.pretraining

        nothing = LabelledImages(training_set.images[:0], training_set.labels[:0])
        stage_1 = pretrain(training_set, nothing, recipe.pretraining, classifier_run)
        z = extract_features(training_set.images, training_set.statistics, stage_1.trunk, experiment)
        stage_2 = initialise_hash_layer(
            LabelledFeatures(z, training_set.labels, training_set.class_names),
            recipe.hash_layer_init,
            replace(run, checkpoints=self._checkpoints("hash_layer_init")),
        )
        start = PreTrainedWeights(stage_1.trunk, stage_2.weights, stage_1.softmax, z)
        tuned = fine_tune(
            training_set, recipe.fine_tuning, replace(run, checkpoints=self._checkpoints("fine_tuning")), start
        )
        self.history_ = tuned.history
        frozen, hasher = experiment.trunk.frozen, tuned.hasher
        codes = pack_bits(hasher.encoder.transform(z)) if frozen else hasher.encode(training_set.images)
        candidates = [Candidate(hasher, codes)]
        if len(held_out.labels):
            candidates += without_fine_tuning(training_set, z, stage_1.trunk, stage_2.encoder, run)
        self._take_best(candidates, training_set, held_out)
        return self

    def _checkpoints(self, stage: str) -> CheckpointFolder | None:
        return None if self.checkpoints is None else CheckpointFolder(Path(self.checkpoints) / stage, 30)

    def _recipe(self, training_set: TrainingSet, run: ClassifierRun) -> Recipe:
        """Give the parameters of the three stages: those of the caller, else those of the network's recipe."""
        size, network = len(training_set.labels), run.experiment.network
        recipe = recipe_for(network, size, len(training_set.class_names), run.experiment.trunk.frozen)
        given = {name: getattr(self, name) for name in Recipe._fields if getattr(self, name) is not None}
        for name, parameters in given.items():
            usual = type(getattr(recipe, name))
            if not isinstance(parameters, usual):
                raise InputError(f"DeepHash: pass {name} as {usual.__name__}, not {type(parameters).__name__}")
        recipe = recipe._replace(**given)
        # Before any stage is trained.
        for name, parameters in recipe._asdict().items():
            steps_per_epoch(size, parameters.training, name)
        if recipe.pretraining.trials and not run.experiment.trunk.frozen:
            chosen = choose_pretraining(training_set, recipe.pretraining, run, pretrain)
            recipe = recipe.following(chosen)._replace(**{**given, "pretraining": chosen})
        return recipe

    def _take_best(self, candidates: Sequence[Candidate], training_set: TrainingSet, held_out: LabelledImages) -> None:
        """Become the hasher whose codes are best on images held out; the first of equally good ones."""
        scores = [held_out_map(each.hasher, held_out, each.codes, training_set.labels) for each in candidates]
        best = int(np.argmax(scores))
        hasher, codes = candidates[best]
        self._compose(*hasher._fitted(), self.device)
        self._database = (codes, training_set.labels)
        self.learned_by_ = hasher.description.method
        self.validation_map_, self.validation_chance_ = scores[best], float("nan")
        if not len(held_out.labels):
            logger.info("there are too few images of each class to hold some out: nothing says what was learned")
            return
        if best:
            # In a quick look it has hardly begun.
            logger.log(
                logging.WARNING if self.effort == 1 else logging.INFO,
                "fine-tuning ended below %s on the %d images held out, mAP %.3f and %.3f: the latter's codes are taken",
                *(NAMES[self.learned_by_], len(held_out.labels), scores[0], scores[best]),
            )
        self.validation_chance_ = chance_level(held_out.labels, training_set.labels)
        little = is_near_chance(self.validation_map_, self.validation_chance_)
        logger.log(
            logging.WARNING if little else logging.INFO,
            "mAP of %d images held out: %.3f, by chance %.3f%s",
            len(held_out.labels),
            self.validation_map_,
            self.validation_chance_,
            f"; it has learned little: {self._remedy()}" if little else "",
        )

    def _remedy(self) -> str:
        if self.effort < 1:
            return "raise `effort` to 1"
        if self.description.network in NETWORKS:
            return 'leave out `network`, or set it to "small_resnet", which learns from few images'
        return "give more images of each class, and check that the labels are those of the images"

    def transform(self, images: Any) -> NDArray[np.bool_]:
        """Bits of the codes of images, as `ImageHasher.encode` takes them: bool of shape (n, code_length)."""
        return np.unpackbits(self.encode(images), axis=1, count=self.code_length).astype(bool)

    def score(self, images: Any, labels: Any) -> float:
        """Mean average precision of images as queries of the training images.

        Args:
            images: images that were not trained on, as `ImageHasher.encode` takes them.
            labels: their classes, named as those of `fit`, shape (n,) or (n, classes).

        Raises:
            InputError: images and labels of different number, or no image has a class that was trained.
        """
        queries, (names, numbers) = self.encode(images), numbered_labels(labels)
        if len(queries) != len(numbers):
            raise InputError(f"{len(queries)} images but {len(numbers)} labels: pass one class for each image")
        if numbers.ndim == 1:
            known = {name: number for number, name in enumerate(self.description.class_names)}
            # A class that was not trained has no relevant image, and is left out of the mean.
            numbers = np.array([known.get(name, -1) for name in names])[numbers]
        found = count_distances(queries, numbers, *self._database, self.code_length)
        value = mean_average_precision(found)
        if np.isnan(value):
            raise InputError("no image has a class that was trained: pass labels named as those of `fit`")
        return value

    def _training_set(self, images: Any, labels: Any, experiment: Experiment) -> tuple[TrainingSet, LabelledImages]:
        """Decode the images at the network's size, number the classes, and hold some of each out."""
        if isinstance(images, np.ndarray) and images.ndim == 2:
            raise InputError(f"images of shape {images.shape} are flat: pass (n, height, width), or with 3 channels")
        names, numbers = numbered_labels(labels)
        if len(names) < 2:
            raise InputError("DeepHash learns from classes: pass labels of at least two")
        batches = image_batches(images, self._image_shape(experiment.network, images), DECODED_AT_A_TIME)
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

    def _image_shape(self, network: str, images: Any) -> tuple[Channels, int, int]:
        if network in NETWORKS:
            channels, height, width = NETWORKS[network][0].output
            return 1 if channels == 1 else 3, height, width
        if network in SMALL_RESNETS:
            looked_at = first_images(images)
            height, width = checked_size(self.image_size or usual_size(looked_at))
            return 1 if all(is_grey(pixels) for pixels in looked_at) else 3, height, width
        height, width = checked_size(self.image_size or usual_input(network).size)
        return 3, height, width
