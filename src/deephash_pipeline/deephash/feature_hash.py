"""Codes of images without labels: a trunk that was trained on other images, and a hash function on its features."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.own_settings import own_settings
from deephash_pipeline.deephash import hasher
from deephash_pipeline.deephash.features import FeatureExtractor
from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.hashers import HasherDescription
from deephash_pipeline.hashers.base import Runtime
from deephash_pipeline.hashing import HASH_FUNCTIONS, Encoder, HashFunction
from deephash_pipeline.hashing.itq import ITQ
from deephash_pipeline.images.batches import Images
from deephash_pipeline.networks import NETWORKS, Backbone
from deephash_pipeline.provenance import code_version


@dataclass(eq=False, repr=False)
class FeatureHash(BaseEstimator, ImageHasher):  # type: ignore[misc]
    """A hash function on the features of a pretrained network of torchvision or timm; an `ImageHasher`.

    Nothing is trained but the hash function. Memory holds the features and never all images.

    Args:
        hash_function: hash function of `deephash_pipeline.hashing`, which is copied; None for ITQ with 48 bits. LSH,
            PCAH, ITQ, SH, SRH, AGH and SpH need no labels.
        network: a classifier of `torchvision.models`, or a model of timm, such as ``timm/tf_efficientnet_lite0``.
        weights: file of its state, ``.safetensors`` or of `torch.save`; None for its library's: those of an installed
            package (extra ``photos``), else downloaded.
        image_size: height and width to which images are resized; None for those that the weights were made for.
        random_state: seed of what is drawn besides; the hash function has its own.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        runtime: runtime that computes features: ``torch``, ``onnx``, or ``auto`` for ONNX Runtime where it is installed
            and there is no GPU. A hasher keeps it.

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
    image_size: tuple[int, int] | None = None
    random_state: int = 0
    device: str = "auto"
    runtime: Runtime | Literal["auto"] = "auto"

    @own_settings()
    def fit(self, images: Images, labels: Any = None) -> Self:
        """Learn the hash function.

        Args:
            images: images, as `ImageHasher.encode` takes them.
            labels: the class of each, for hash functions that need one.

        Raises:
            InputError: no image, or a hash function that needs labels and gets none.
        """
        function = ITQ(48) if self.hash_function is None else self.hash_function
        try:
            HASH_FUNCTIONS.name_of(type(function))
        except LookupError:
            raise InputError(f"{function!r} is no hash function on features: take one such as ITQ(48)") from None
        function = clone(function)
        if function.supervised and labels is None:
            raise InputError(f"{type(function).__name__} learns from labels: pass them, or take ITQ, which needs none")
        if self.network in NETWORKS:
            raise InputError(f"there are no pretrained weights of `{self.network}`: take a network such as resnet18")
        extractor = FeatureExtractor.pretrained(
            self.network, weights=self.weights, image_size=self.image_size, device=self.device, runtime=self.runtime
        )
        z = extractor.features(images)
        if not len(z):
            raise InputError("there are no images to learn from: pass at least two")
        encoder, description = learned_hash(function, extractor, z, labels, self.random_state)
        self._compose(extractor.trunk, encoder, description, self.device)
        return self


def learned_hash(
    function: HashFunction, extractor: FeatureExtractor, z: NDArray[np.float32], labels: Any = None, seed: int = 0
) -> tuple[Encoder, HasherDescription]:
    """Fit a hash function on features that an extractor has computed, and describe the hasher that both make.

    Args:
        function: hash function of `deephash_pipeline.hashing`; it is fitted.
        extractor: source of the features, of a `Backbone`.
        z: features (n, dimension).
        labels: the class of each, for a hash function that needs one.
        seed: seed of the experiment, for the description.

    Raises:
        InputError: the hash function cannot be fitted on them.
    """
    trunk = extractor.trunk
    assert isinstance(trunk, Backbone), "weights that were learned elsewhere are a backbone's"
    encoder = function.fit(z, labels)
    key = HASH_FUNCTIONS.name_of(type(function))
    return encoder, HasherDescription(
        network=trunk.network,
        trunk=trunk.settings.of_hasher(),
        image_shape=extractor.image_shape,
        code_length=encoder.code_length,
        method=key,
        encoder=key,
        class_names=(),
        statistics=dict(extractor.statistics),
        benchmark="images",
        seed=seed,
        training_images=len(z),
        runtime=extractor.runtime,
        code_version=code_version(Path(hasher.__file__).parent),
    )
