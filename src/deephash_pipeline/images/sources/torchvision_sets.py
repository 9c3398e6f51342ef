"""Data sets that torchvision downloads, checks against their MD5 and reads, MNIST among them; CIFAR-10 as files too."""

import os
import pickle
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.image_files import Channels
from deephash_pipeline.images.sources.collection import ImageCollection, ImageSet
from deephash_pipeline.images.sources.source import ImageSource

TorchvisionName = Literal["MNIST", "FashionMNIST", "KMNIST", "CIFAR10", "CIFAR100", "FER2013"]
EMOTIONS = ("angry", "disgust", "fear", "happy", "sad", "surprise", "neutral")
"""Classes of FER2013, which torchvision does not name."""


class TorchvisionSource(ImageSource):
    """A data set of torchvision; the raw folder is its `root`, and `class_names` may take the place of its own.

    Three `channels` repeat grey ones; None leaves images as they are.
    """

    kind: Literal["torchvision"]
    name: TorchvisionName
    download: bool = False
    class_names: tuple[str, ...] | None = None
    channels: Channels | None = None

    def read(self, folder: Path) -> ImageCollection:
        """Read it, after a download if there is to be one; its training images are "training", test images "query".

        What is downloaded with another MD5 than the published one is refused.

        Returns:
            Images (n, 1, 28, 28), (n, 3, 32, 32) of CIFAR or (n, 1, 48, 48) of FER2013; ids are
            "<split>/<position in the data set>".

        Raises:
            InputError: if files are missing or damaged, or cannot be downloaded.
        """
        splits = {}
        for split in ("training", "query"):
            data = data_set(self.name, folder, split == "training", self.download)
            pixels = np.stack([np.asarray(image) for image, _ in data])
            images = pixels[:, np.newaxis] if pixels.ndim == 3 else np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
            if self.channels == 3 and images.shape[1] == 1:
                images = np.repeat(images, 3, axis=1)
            labels = np.array([label for _, label in data], dtype=np.int64)
            splits[split] = ImageSet(images, labels, [f"{split}/{row:05d}" for row in range(len(labels))])
        own: Sequence[str] = getattr(data, "classes", EMOTIONS)
        return ImageCollection(splits, list(own if self.class_names is None else self.class_names))

    def is_there(self, folder: Path) -> bool:
        """Say whether the folder is there, or will be after a download."""
        return self.download or super().is_there(folder)


def data_set(name: TorchvisionName, folder: Path, training: bool, download: bool) -> Any:
    """Make a data set of torchvision, of its training or its test images.

    Raises:
        InputError: files are missing or damaged, or cannot be downloaded.
    """
    from torchvision import datasets  # noqa: PLC0415 - takes seconds, which other benchmarks need not wait for

    try:
        if name == "FER2013":
            # Of Kaggle, which asks for an account.
            return datasets.FER2013(folder, "train" if training else "test")
        return getattr(datasets, name)(folder, train=training, download=download)
    except Exception as error:  # damaged files and networks make its readers raise anything
        remedy = "check the network and try again" if download else "set `download: true` of the source"
        raise InputError(
            f"torchvision cannot read {name} from {folder} ({error}): delete its files there if they are damaged; "
            f"{remedy}, or put them there by hand."
        ) from error


def download_cifar10(folder: Path) -> Iterator[str]:
    """Fetch CIFAR-10 and unpack it into `train/<class>/*.png` and `test/<class>/*.png`; yield one line on each folder.

    A folder appears under its name only when all its images are in it. Files keep the names that they have in the
    original batches: the order of names decides what a seed draws, so every copy of CIFAR-10 with these names is split
    alike. The batches are pickles, read after torchvision has checked every file of them.

    Args:
        folder: where `FolderSource` will look for them, such as data/01_raw/cifar10; made where it is missing.

    Raises:
        InputError: the right archive cannot be had.
    """
    missing = [split for split in ("train", "test") if not (folder / split).is_dir()]
    for split in ("train", "test"):
        if split not in missing:
            yield f"{folder / split}: already there"
    if not missing:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as waiting_room:
        for split in missing:
            batches = data_set("CIFAR10", Path(waiting_room), split == "train", download=True)
            unpacked = Path(waiting_room) / split
            for name in batches.classes:
                (unpacked / name).mkdir(parents=True)
            for pixels, label, name in zip(batches.data, batches.targets, _original_names(batches), strict=True):
                Image.fromarray(pixels).save(unpacked / batches.classes[label] / name)
            os.replace(unpacked, folder / split)
            yield f"{folder / split}: {len(batches):,} images"


def _original_names(batches: Any) -> list[str]:
    """Return the name of each image's file, which torchvision does not keep."""
    names: list[str] = []
    for file, _ in batches.train_list if batches.train else batches.test_list:
        batch = pickle.loads(Path(batches.root, batches.base_folder, file).read_bytes(), encoding="latin1")
        names += batch["filenames"]
    return names
