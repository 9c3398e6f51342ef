"""The embedded benchmark: 1,797 handwritten digits that come with scikit-learn, so a first run needs no download."""

import numpy as np
from PIL import Image

from deephash_pipeline.images.sources.collection import ImageCollection, ImageSet

BRIGHTEST = 16


def read_digits(image_size: int = 28) -> ImageCollection:
    """Read the 8x8 digits, grey values 0..16 scaled to 0..255, enlarged bilinearly to the size that LeNet expects.

    Args:
        image_size: height and width in pixels.

    Returns:
        One split "all": images (1797, 1, image_size, image_size), labels 0..9.

    Example:
        >>> read_digits(28).splits["all"].images.shape
        (1797, 1, 28, 28)
    """
    from sklearn.datasets import load_digits  # noqa: PLC0415 - takes a second, which other benchmarks need not wait for

    digits = load_digits()
    grey = np.rint(digits.images * (255 / BRIGHTEST)).astype(np.uint8)
    size = (image_size, image_size)
    images = np.stack([np.asarray(Image.fromarray(digit).resize(size, Image.Resampling.BILINEAR)) for digit in grey])
    labels = digits.target.astype(np.int64)
    ids = [f"digits/{row:04d}" for row in range(len(labels))]
    class_names = [str(name) for name in digits.target_names]
    return ImageCollection({"all": ImageSet(images[:, np.newaxis], labels, ids)}, class_names)
