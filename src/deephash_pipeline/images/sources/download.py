"""Fetch CIFAR-10 by torchvision, which checks it against its published MD5, and unpack it into files."""

import os
import pickle
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from deephash_pipeline.images.sources.torchvision_sets import data_set


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
