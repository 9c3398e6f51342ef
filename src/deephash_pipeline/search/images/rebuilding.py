"""An index that takes the place of another, at once and as a whole."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.search import HammingIndex
from deephash_pipeline.search.images.index import ImageIndex
from deephash_pipeline.search.images.listing import ListedImage
from deephash_pipeline.search.images.pictures import picture_name
from deephash_pipeline.search.images.stored import same_hasher
from deephash_pipeline.search.replacing import PICTURES, replacing_index
from deephash_pipeline.search.store import LEDGER

if TYPE_CHECKING:
    from deephash_pipeline.deephash import ImageHasher


def has_other_hasher(folder: Path, hasher: "ImageHasher") -> bool:
    """Tell whether there is an index that was made with another hasher."""
    return (folder / LEDGER).is_file() and not same_hasher(folder, hasher)


@contextmanager
def rebuilt(folder: Path, hasher: "ImageHasher") -> Iterator[ImageIndex]:
    """Give a new index that takes the place of the one in a folder when all has gone well.

    It is made beside the old one, which stays as it is until then, and for good if nothing is added. Pictures that only
    the old one has are encoded anew, and are the first of the new one.

    Args:
        folder: directory of the index, or a symbolic link to it.
        hasher: makes the codes of the new one.

    Raises:
        InputError: the folder has files of others, another process writes the index, or nothing was added.
    """
    with replacing_index(folder) as beside, ImageIndex.create(beside, hasher) as images:
        kept = _keep_pictures(folder.resolve(), images)
        yield images
        if len(images) == kept:
            raise InputError(f"no image was added: {folder} stays as it was")


def _keep_pictures(place: Path, images: ImageIndex) -> int:
    """Add the images of an index whose pictures are files nowhere else; return how many."""
    assert images.folder is not None
    with HammingIndex.open(place, read_only=True) as old:
        found = [(item.id, item.metadata) for _, items in old.batches(1000) for item in items]
    kept = [
        ListedImage(str(name), Path(metadata["path"]), metadata.get("label"))
        for name, metadata in found
        if str(metadata.get("path")).startswith(f"{PICTURES}/")
        # The database of a run has its pictures again.
        and Path(metadata["path"]).stem != picture_name(str(name))
    ]
    if kept:
        (images.folder / PICTURES).mkdir()
    for image in kept:
        shutil.copyfile(place / image.path, images.folder / image.path)
    return images.add_files(kept).added
