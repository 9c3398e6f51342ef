"""Codes of images without labels: a trunk that was trained on other images, and a hash function on its features."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from sklearn.base import BaseEstimator, clone

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.parameters import faults_in_one_line
from deephash_pipeline.deephash import hasher
from deephash_pipeline.deephash.experiment import Experiment
from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.deephash.pretrain import frozen_trunk
from deephash_pipeline.hashers import HasherDescription
from deephash_pipeline.hashing import HASH_FUNCTIONS, ITQ, HashFunction
from deephash_pipeline.images.batches import Images, image_batches
from deephash_pipeline.images.decoding.image_files import Channels, checked_size
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.networks import NETWORKS, Trunk
from deephash_pipeline.provenance import code_version
from deephash_pipeline.training import outputs_in_blocks

IMAGENET = {"mean": [0.485, 0.456, 0.406], "standard_deviation": [0.229, 0.224, 0.225]}
"""Of the images that torchvision's weights were trained on, as torchvision documents them."""

DECODED_AT_A_TIME = 64


@dataclass(eq=False, repr=False)
class FeatureHash(BaseEstimator, ImageHasher):  # type: ignore[misc]
    """A hash function on the features of a pretrained network of torchvision; an `ImageHasher`.

    Nothing is trained but the hash function. Memory holds the features and never all images.

    Args:
        hash_function: any of `deephash_pipeline.hashing`, which is copied; None for ITQ with 48 bits. LSH, PCAH, ITQ,
            SH, AGH and SpH need no labels.
        network: a classifier of `torchvision.models`.
        weights: file of its state, ``.safetensors`` or of `torch.save`; None for torchvision's, which are downloaded.
        image_size: height and width to which images are resized.
        random_state: of what is drawn besides; the hash function has its own.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.

    Raises:
        InputError: a parameter, an image or the weights are refused.

    >>> import tempfile, torch, torchvision
    >>> from deephash_pipeline import FeatureHash
    >>> from deephash_pipeline.hashing import ITQ
    >>> images = np.random.default_rng(0).integers(0, 256, (40, 3, 32, 32), dtype=np.uint8)
    >>> with tempfile.NamedTemporaryFile(suffix=".pth") as file:
    ...     torch.save(torchvision.models.squeezenet1_1().state_dict(), file.name)
    ...     hasher = FeatureHash(ITQ(16), "squeezenet1_1", weights=file.name, image_size=(64, 64)).fit(images)
    >>> hasher.encode(images[:3]).shape
    (3, 2)
    """

    hash_function: HashFunction | None = None
    network: str = "resnet18"
    _: KW_ONLY
    weights: str | Path | None = None
    image_size: tuple[int, int] = (224, 224)
    random_state: int = 0
    device: str = "auto"

    def fit(self, images: Images, labels: Any = None) -> Self:
        """Learn the hash function.

        Args:
            images: as `ImageHasher.encode` takes them.
            labels: the class of each, for hash functions that need one.

        Raises:
            InputError: no image, or a hash function that needs labels and gets none.
        """
        function = ITQ(48) if self.hash_function is None else clone(self.hash_function)
        try:
            key = HASH_FUNCTIONS.name_of(type(function))
        except LookupError:
            name = type(function).__name__
            raise InputError(f"{name} is no hash function on features: take one such as ITQ") from None
        if function.supervised and labels is None:
            raise InputError(f"{type(function).__name__} learns from labels: pass them, or take ITQ, which needs none")
        if self.network in NETWORKS:
            raise InputError(f"there are no pretrained weights of `{self.network}`: take a network such as resnet18")
        weights = None if self.weights is None else str(self.weights)
        trunk_parameters = {"pretrained": True, "frozen": True, "weights": weights}
        settings = {"network": self.network, "seed": self.random_state, "device": self.device}
        try:
            experiment = Experiment.model_validate({"benchmark": "images", "trunk": trunk_parameters, **settings})
        except ValidationError as error:
            raise InputError(f"FeatureHash: {faults_in_one_line(error)}") from error
        height, width = checked_size(self.image_size)
        shape: tuple[Channels, int, int] = (3, height, width)
        trunk = frozen_trunk(experiment, shape).eval()
        z = self._features_of(images, trunk, experiment)
        encoder = function.fit(z, labels)
        description = HasherDescription(
            network=self.network,
            trunk=experiment.trunk.of_hasher(),
            image_shape=shape,
            code_length=encoder.code_length,
            method=key,
            encoder=key,
            class_names=(),
            statistics=IMAGENET,
            benchmark=experiment.benchmark,
            seed=self.random_state,
            training_images=len(z),
            code_version=code_version(Path(hasher.__file__).parent),
        )
        self._compose(trunk, encoder, description, self.device)
        return self

    def _features_of(self, images: Images, trunk: Trunk, experiment: Experiment) -> NDArray[np.float32]:
        device, (height, width) = experiment.torch_device, self.image_size
        trunk = trunk.to(device)
        blocks = [
            outputs_in_blocks(trunk, ImageInputs(batch.pixels, IMAGENET, device, size=trunk.image_size))
            for batch in image_batches(images, (3, height, width), DECODED_AT_A_TIME)
        ]
        if not blocks:
            raise InputError("there are no images to learn from: pass at least two")
        return np.concatenate(blocks)
