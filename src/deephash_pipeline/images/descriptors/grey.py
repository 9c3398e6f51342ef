"""What both descriptors start from: grey images."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError


def check_images(images: NDArray[Any]) -> None:
    """Raise InputError unless the images are uint8 of shape (n, channels, height, width), none of them empty."""
    if images.dtype != np.uint8 or images.ndim != 4 or 0 in images.shape[1:]:
        raise InputError(
            f"images are {images.dtype} of shape {images.shape}: give uint8 of shape (n, channels, height, width)."
        )


def grey_images(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Mean of the channels of uint8 images (n, channels, height, width): float32 (n, height, width), 0..255.

    Example:
        >>> grey_images(np.array([[[[0]], [[30]], [[60]]]], dtype=np.uint8)).tolist()
        [[[30.0]]]
    """
    return np.asarray(images.mean(axis=1, dtype=np.float32))
