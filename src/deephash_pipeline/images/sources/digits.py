"""The embedded benchmark: 1,797 handwritten digits that come with scikit-learn, so a first run needs no download."""

from pathlib import Path
from typing import Literal

import numpy as np
import sklearn
from PIL import Image
from pydantic import Field

from deephash_pipeline.images.sources.collection import ImageCollection, ImageSet
from deephash_pipeline.images.sources.source import ImageSource

BRIGHTEST = 16


class DigitsSource(ImageSource):
    """The digits of scikit-learn, embedded: no raw files."""

    kind: Literal["digits"]
    image_size: int = Field(default=28, ge=1)

    def read(self, folder: Path) -> ImageCollection:
        """Read them; no folder is looked at."""
        return read_digits(self.image_size)

    def is_there(self, folder: Path) -> bool:
        """Say yes: they come with scikit-learn."""
        return True

    def files(self, folder: Path) -> tuple[Path, list[str]]:
        """Name the file of scikit-learn."""
        return Path(sklearn.__file__).parent / "datasets" / "data", ["digits.csv.gz"]


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
