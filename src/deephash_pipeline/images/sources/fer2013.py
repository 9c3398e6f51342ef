"""FER2013 as Kaggle gives it: one CSV with 48x48 grey values in words, from which Kaggle-Face is made."""

from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.image_files import Channels
from deephash_pipeline.images.sources.collection import ImageCollection, ImageSet
from deephash_pipeline.images.sources.source import ImageSource
from deephash_pipeline.images.sources.table import FIRST_ROW, read_csv

CLASS_NAMES = ["angry", "disgust", "fear", "happy", "sad", "surprise", "neutral"]
SPLITS = {"Training": "training", "PublicTest": "query", "PrivateTest": "query"}
EMOTIONS = [str(label) for label in range(len(CLASS_NAMES))]
IMAGE_SIZE = 48


class Fer2013Source(ImageSource):
    """FER2013 as Kaggle gives it: one CSV in the raw folder."""

    kind: Literal["fer2013"]
    channels: Channels = 1
    file: str = "fer2013.csv"

    def read(self, folder: Path) -> ImageCollection:
        """Read the CSV."""
        return read_fer2013(folder / self.file, self.channels)


def read_fer2013(path: Path, channels: Channels = 1) -> ImageCollection:
    """Read `fer2013.csv` with its columns emotion (0..6), pixels (2304 numbers) and Usage.

    Args:
        path: the CSV file.
        channels: 3 repeats the grey values.

    Returns:
        "training", and "query" with the public and the private test images: images (n, channels, 48, 48); ids are
        "fer2013/<position in the file>".

    Raises:
        InputError: if the file is missing, a row is damaged, or a class has no image to train from.
    """
    table = read_csv(path, {"emotion", "pixels", "Usage"})
    pixels = np.empty((len(table), 1, IMAGE_SIZE, IMAGE_SIZE), dtype=np.uint8)
    labels = np.empty(len(table), dtype=np.int64)
    for row, (emotion, words) in enumerate(zip(table["emotion"], table["pixels"], strict=True)):
        try:
            labels[row] = EMOTIONS.index(emotion.strip())
            pixels[row] = _image(words)
        except ValueError as error:
            raise InputError(
                f"{path}, row {row + FIRST_ROW}: emotion is to be 0..{len(CLASS_NAMES) - 1} and pixels "
                f"{IMAGE_SIZE**2} numbers 0..255 ({error}); download the file anew."
            ) from error
    unknown = sorted(set(table["Usage"]) - set(SPLITS))
    if unknown:
        raise InputError(f"{path} has the Usage {unknown[0]!r}: it is to be one of {', '.join(SPLITS)}.")
    splits = {}
    usage = table["Usage"].map(SPLITS).to_numpy()
    for split in ("training", "query"):
        rows = np.flatnonzero(usage == split)
        images = np.repeat(pixels[rows], channels, axis=1)
        splits[split] = ImageSet(images, labels[rows], [f"fer2013/{row:05d}" for row in rows])
    return ImageCollection(splits, CLASS_NAMES)


def _image(words: str) -> NDArray[np.uint8]:
    values = np.frombuffer(bytes(map(int, words.split())), dtype=np.uint8)
    return values.reshape(1, IMAGE_SIZE, IMAGE_SIZE)
