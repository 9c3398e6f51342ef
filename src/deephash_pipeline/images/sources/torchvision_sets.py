"""Data sets that torchvision downloads, checks against their MD5 and reads, MNIST among them."""

import http.client
import pickle
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.sources.collection import ImageCollection, ImageSet
from deephash_pipeline.images.sources.source import ImageSource

TorchvisionName = Literal["MNIST", "FashionMNIST", "KMNIST", "CIFAR10", "CIFAR100"]

FAILURES = (
    OSError,
    RuntimeError,
    ValueError,
    EOFError,
    http.client.HTTPException,
    tarfile.TarError,
    pickle.PickleError,
)


class TorchvisionSource(ImageSource):
    """A data set of torchvision; the raw folder is its `root`, and `class_names` may take the place of its own."""

    kind: Literal["torchvision"]
    name: TorchvisionName
    download: bool = False
    class_names: tuple[str, ...] | None = None

    def read(self, folder: Path) -> ImageCollection:
        """Read it, after a download if there is to be one."""
        return read_torchvision(self.name, folder, self.download, self.class_names)

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
        return getattr(datasets, name)(folder, train=training, download=download)
    except FAILURES as error:
        remedy = "check the network and try again" if download else "set `download: true` of the source"
        raise InputError(
            f"torchvision cannot read {name} from {folder} ({error}): delete its files there if they are damaged; "
            f"{remedy}, or put them there by hand."
        ) from error


def read_torchvision(
    name: TorchvisionName, folder: Path, download: bool = False, class_names: Sequence[str] | None = None
) -> ImageCollection:
    """Read a data set of torchvision, whose training images are the split "training" and test images "query".

    Args:
        name: of the class in `torchvision.datasets`.
        folder: what torchvision calls `root`.
        download: fetch what is missing; what arrives with another MD5 than the published one is refused.
        class_names: of the labels 0, 1, ...; None for torchvision's.

    Returns:
        Images (n, 1, 28, 28), or (n, 3, 32, 32) of CIFAR; ids are "<split>/<position in the data set>".

    Raises:
        InputError: if files are missing or damaged, or cannot be downloaded.
    """
    splits = {}
    for split in ("training", "query"):
        data = data_set(name, folder, split == "training", download)
        pixels = np.asarray(data.data)
        images = pixels[:, np.newaxis] if pixels.ndim == 3 else np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
        labels = np.asarray(data.targets, dtype=np.int64)
        splits[split] = ImageSet(images, labels, [f"{split}/{row:05d}" for row in range(len(labels))])
    return ImageCollection(splits, list(class_names or data.classes))
