"""Data sets that torchvision downloads, checks against their MD5 and reads."""

import http.client
import pickle
import tarfile
from pathlib import Path
from typing import Literal

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
    """A data set of torchvision; the raw folder is its `root`."""

    kind: Literal["torchvision"]
    name: TorchvisionName
    download: bool = False

    def read(self, folder: Path) -> ImageCollection:
        """Read it, after a download if there is to be one."""
        return read_torchvision(self.name, folder, self.download)

    def is_there(self, folder: Path) -> bool:
        """Say whether the folder is there, or will be after a download."""
        return self.download or super().is_there(folder)


def read_torchvision(name: TorchvisionName, folder: Path, download: bool = False) -> ImageCollection:
    """Read a data set of torchvision, whose training images are the split "training" and test images "query".

    Args:
        name: of the class in `torchvision.datasets`.
        folder: what torchvision calls `root`.
        download: fetch what is missing; what arrives with another MD5 than the published one is refused.

    Returns:
        Images (n, 1, 28, 28), or (n, 3, 32, 32) of CIFAR; ids are "<split>/<position in the data set>".

    Raises:
        InputError: if files are missing or damaged, or cannot be downloaded.
    """
    from torchvision import datasets  # noqa: PLC0415 - takes seconds, which other benchmarks need not wait for

    splits = {}
    for split in ("training", "query"):
        try:
            data = getattr(datasets, name)(folder, train=split == "training", download=download)
        except FAILURES as error:
            remedy = "check the network and try again" if download else "set `download: true` of the source"
            raise InputError(
                f"torchvision cannot read {name} from {folder} ({error}): delete its files there if they are damaged; "
                f"{remedy}, or put them there by hand."
            ) from error
        pixels = np.asarray(data.data)
        images = pixels[:, np.newaxis] if pixels.ndim == 3 else np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
        labels = np.asarray(data.targets, dtype=np.int64)
        splits[split] = ImageSet(images, labels, [f"{split}/{row:05d}" for row in range(len(labels))])
    return ImageCollection(splits, list(data.classes))
