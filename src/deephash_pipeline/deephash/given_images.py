"""Arguments of `DeepHash`: choose the network and the size that fit the images, and number the labels."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash.features import PHOTOGRAPHS
from deephash_pipeline.images.batches import image_batches

SMALL_SIDE = 96
"""Pixels of a side up to which ``auto`` trains a small residual network, from random weights."""
LEAST_IMAGE_SIDE, STEP = 24, 8
"""Pixels: sides of images for that network are multiples of 8 from 24 on."""
IMAGES_LOOKED_AT = 8
"""Images whose sizes and colours are looked at."""


def first_images(images: Any) -> list[NDArray[np.uint8]]:
    """Decode the first images in colour, each (3, height, width) of its own size."""
    if isinstance(images, np.ndarray) and images.ndim == 3:
        images = images[:, np.newaxis]
    return [batch.pixels[0] for batch in islice(image_batches(images, (3,), batch_size=1), IMAGES_LOOKED_AT)]


def is_grey(pixels: NDArray[np.uint8]) -> bool:
    """Tell whether all channels of (3, height, width) are the same."""
    return bool((pixels == pixels[0]).all())


def usual_network(images: Any) -> str:
    """Choose a network by the size of the first images.

    Example:
        >>> usual_network(np.zeros((2, 28, 28), np.uint8)), usual_network(np.eye(97, dtype=np.uint8)[None])
        ('small_resnet', 'timm/tf_efficientnet_lite0')
    """
    large = any(max(pixels.shape) > SMALL_SIDE for pixels in first_images(images))
    return PHOTOGRAPHS if large else "small_resnet"


def usual_size(images: Sequence[NDArray[np.uint8]]) -> tuple[int, int]:
    """Give height and width of about the middle one of the images, as multiples of `STEP` up to `SMALL_SIDE`."""
    middle = np.median([pixels.shape[1:] for pixels in images], axis=0)
    height, width = (STEP * np.ceil(middle / STEP)).clip(LEAST_IMAGE_SIDE, SMALL_SIDE).astype(int).tolist()
    return height, width


def numbered_labels(given: Any) -> tuple[list[str], NDArray[np.int64] | NDArray[np.uint8]]:
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
