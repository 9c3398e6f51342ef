"""Training sets: images or features, with their labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError


@dataclass(frozen=True)
class LabelledImages:
    """Decoded images and their classes.

    Attributes:
        images: uint8 of shape (n, channels, height, width); may be memory-mapped.
        labels: int64 of shape (n,), classes numbered from 0; or, where an image may have any number of labels, uint8 of
            shape (n, classes), 1 for each that it has.

    Raises:
        InputError: the images have another shape or dtype, or there are not labels for each of them.

    Example:
        >>> images, labels = np.zeros((2, 1, 28, 28), dtype=np.uint8), np.array([0, 1])
        >>> len(LabelledImages(images, labels).labels)
        2
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64] | NDArray[np.uint8]

    def __post_init__(self) -> None:
        if self.images.dtype != np.uint8 or self.images.ndim != 4:
            raise InputError(
                f"images are {self.images.dtype} of shape {self.images.shape}: pass uint8 (n, channels, height, width)"
            )
        if len(self.labels) != len(self.images) or self.labels.ndim > 2:
            raise InputError(f"{len(self.images)} images but {len(self.labels)} labels: pass one class for each image")
        if self.labels.dtype != (np.int64 if self.labels.ndim == 1 else np.uint8):
            raise InputError(f"labels are {self.labels.dtype}: pass int64 (n,), or uint8 (n, classes)")


@dataclass(frozen=True)
class TrainingSet(LabelledImages):
    """The images that a network learns from, and what is measured on them alone.

    Attributes:
        statistics: ``mean`` and ``standard_deviation`` of each channel, in units of [0, 1].
        class_names: name of each class; more than occur in `labels` where classes were set aside.

    Example:
        >>> images, labels = np.zeros((2, 1, 28, 28), dtype=np.uint8), np.array([0, 1])
        >>> statistics = {"mean": [0.5], "standard_deviation": [0.25]}
        >>> TrainingSet(images, labels, statistics, ["cat", "dog"]).class_names
        ['cat', 'dog']
    """

    statistics: Mapping[str, list[float]]
    class_names: Sequence[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        classes = len(self.class_names)
        used = self.labels.shape[1] if self.labels.ndim == 2 else int(self.labels.max(initial=-1)) + 1
        if used > classes or self.labels.min(initial=0) < 0:
            raise InputError(f"labels are numbered beyond the {classes} class names: number classes from 0")


@dataclass(frozen=True)
class LabelledFeatures:
    """Features of the training images, which the hash layer is trained on before the trunk moves.

    Attributes:
        z: float32 of shape (n, z_dimension).
        labels: labels, as those of images.
        class_names: name of each class.

    Example:
        >>> LabelledFeatures(np.zeros((2, 500), dtype=np.float32), np.array([0, 1]), ["cat", "dog"]).z.shape
        (2, 500)
    """

    z: NDArray[np.float32]
    labels: NDArray[np.int64] | NDArray[np.uint8]
    class_names: Sequence[str]
