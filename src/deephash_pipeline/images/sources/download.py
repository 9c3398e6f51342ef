"""Fetch MNIST and CIFAR-10 from where torchvision says they lie, each file checked against its published MD5."""

import hashlib
import http.client
import os
import pickle
import shutil
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from PIL import Image
from torchvision.datasets import CIFAR10, MNIST

from deephash_pipeline.common.errors import InputError

SECONDS_TO_ANSWER = 30


def download_mnist(folder: Path) -> Iterator[str]:
    """Fetch the MNIST files that are not in the folder yet, and yield one line on each.

    A file appears under its name only when it is complete and its checksum right; until then it lies in a hidden
    temporary folder beside it, which only a killed process leaves there.

    Args:
        folder: where `IdxSource` will look for them, such as data/01_raw/mnist; made where it is missing.

    Raises:
        InputError: if no mirror gave the right file; the line says why each failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, checksum in MNIST.resources:
        target = folder / name
        if target.is_file() and _md5(target) == checksum:
            yield f"{target}: already there"
            continue
        with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as waiting_room:
            arrived = Path(waiting_room) / name
            mirror = _fetch(MNIST.mirrors, name, checksum, arrived)
            os.replace(arrived, target)
        yield f"{target}: {target.stat().st_size:,} bytes from {mirror}"


def download_cifar10(folder: Path) -> Iterator[str]:
    """Fetch CIFAR-10 and unpack it into `train/<class>/*.png` and `test/<class>/*.png`; yield one line on each folder.

    A folder appears under its name only when all its images are in it. Files keep the names that they have in the
    original batches: the order of names decides what a seed draws, so every copy of CIFAR-10 with these names is split
    alike. The batches are pickles, read after torchvision has checked every file of them.

    Args:
        folder: where `FolderSource` will look for them, such as data/01_raw/cifar10; made where it is missing.

    Raises:
        InputError: if the right archive could not be had; the line says why.
    """
    missing = [split for split in ("train", "test") if not (folder / split).is_dir()]
    for split in ("train", "test"):
        if split not in missing:
            yield f"{folder / split}: already there"
    if not missing:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as waiting_room:
        home = [CIFAR10.url.removesuffix(CIFAR10.filename)]
        mirror = _fetch(home, CIFAR10.filename, CIFAR10.tgz_md5, Path(waiting_room) / CIFAR10.filename)
        for split in missing:
            batches = CIFAR10(waiting_room, train=split == "train", download=True)
            unpacked = Path(waiting_room) / split
            for name in batches.classes:
                (unpacked / name).mkdir(parents=True)
            for pixels, label, name in zip(batches.data, batches.targets, _original_names(batches), strict=True):
                Image.fromarray(pixels).save(unpacked / batches.classes[label] / name)
            os.replace(unpacked, folder / split)
            yield f"{folder / split}: {len(batches):,} images from {mirror}"


def _original_names(batches: CIFAR10) -> list[str]:
    """Return the name of each image's file, which torchvision does not keep."""
    names: list[str] = []
    for file, _ in batches.train_list if batches.train else batches.test_list:
        batch = pickle.loads(Path(batches.root, batches.base_folder, file).read_bytes(), encoding="latin1")
        names += batch["filenames"]
    return names


def _fetch(mirrors: Sequence[str], name: str, checksum: str, target: Path) -> str:
    """Write the file from the first mirror that has it right, and return that mirror."""
    failures = []
    for mirror in mirrors:
        try:
            url = f"{mirror}{name}"
            with urllib.request.urlopen(url, timeout=SECONDS_TO_ANSWER) as answer, target.open("wb") as file:
                shutil.copyfileobj(answer, file)
        except (OSError, http.client.HTTPException) as error:
            failures.append(f"{mirror}: {error}")
            continue
        if _md5(target) == checksum:
            return mirror
        failures.append(f"{mirror}: wrong checksum")
    raise InputError(
        f"{name} could not be downloaded ({'; '.join(failures)}): check the network and try again, or fetch it by hand."
    )


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
