"""Pictures in the folder of an index: of images that are files nowhere else."""

import os
from hashlib import blake2b
from pathlib import Path

from PIL import Image

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import flush
from deephash_pipeline.search.replacing import PICTURES


def picture_name(item_id: str) -> str:
    """The name, without suffix, of the picture of an image of a run's database."""
    return blake2b(item_id.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def write_picture(folder: Path, image: Image.Image, name: str, sync: bool = True) -> str:
    """Write a picture as PNG; return its path from the folder of the index.

    Args:
        folder: directory of the index.
        image: the picture.
        name: of its file, without suffix.
        sync: whether to wait until it is on the disk.

    Raises:
        InputError: the disk is full or cannot be written; no part of the picture is left.
    """
    pictures = folder / PICTURES
    path = pictures / f"{name}.png"
    try:
        pictures.mkdir(exist_ok=True)
        with open(path, "wb") as file:
            image.save(file, "PNG")
            if sync:
                file.flush()
                os.fsync(file.fileno())
        if sync:
            flush(pictures)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise InputError(f"{folder} cannot be written ({error}): make room on its disk") from error
    return f"{PICTURES}/{path.name}"
