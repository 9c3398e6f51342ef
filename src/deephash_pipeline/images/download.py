"""Fetch the four files of MNIST from the mirrors that torchvision lists, each checked against its published MD5."""

import hashlib
import http.client
import os
import shutil
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from torchvision.datasets import MNIST

from deephash_pipeline.errors import InputError

SECONDS_TO_ANSWER = 30


def download_mnist(folder: Path) -> Iterator[str]:
    """Fetch the MNIST files that are not in the folder yet, and yield one line on each.

    A file appears under its name only when it is complete and its checksum right; until then it lies in a hidden
    temporary folder beside it, which is removed whatever happens.

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
            mirror = _fetch(name, checksum, arrived)
            os.replace(arrived, target)
        yield f"{target}: {target.stat().st_size:,} bytes from {mirror}"


def _fetch(name: str, checksum: str, target: Path) -> str:
    """Write the file from the first mirror that has it right, and return that mirror."""
    failures = []
    for mirror in MNIST.mirrors:
        try:
            address = f"{mirror}{name}"
            with urllib.request.urlopen(address, timeout=SECONDS_TO_ANSWER) as answer, target.open("wb") as file:
                shutil.copyfileobj(answer, file)
        except (OSError, http.client.HTTPException) as error:
            failures.append(f"{mirror}: {error}")
            continue
        if _md5(target) == checksum:
            return str(mirror)
        failures.append(f"{mirror}: wrong checksum")
    raise InputError(
        f"{name} could not be downloaded ({'; '.join(failures)}): check the network and try again, or fetch it by hand."
    )


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
