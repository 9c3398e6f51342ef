"""A folder that has changed -> the index of its pictures, brought to the same state."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.progress import count_steps
from deephash_pipeline.hashers.base import EncodedPixels
from deephash_pipeline.images.batches import SkippedImage
from deephash_pipeline.photographs.changes import (
    Changes,
    compared,
    gone,
    ids_below,
    items_below,
    unlinked,
    with_digest,
)
from deephash_pipeline.photographs.index import ImageIndex
from deephash_pipeline.photographs.listing import ListedImage

COPIED_AT_A_TIME = 1024
STORED_AT_A_TIME = 128
"""Pictures that are decoded while as many before are computed, and of which as many are lost when a build is killed."""
Missing = Literal["few", "few_or_none", "all", "none"]
"""Of the items whose files are gone, which are removed: all, if at most half, else an error or none; all; none."""


@dataclass
class AddedImages:
    """What became of images that were to be added.

    Attributes:
        added: number of images that are in the index now and were not before.
        there: number of images that were in it already.
        changed: ids of those that were in it with another content, and are encoded again.
        skipped: files that cannot be read, and why.
        unreadable: those of them whose content is at fault, with the stamp that they had.
        renamed: number of images whose files have got another name; those of a new name are not among the added.
        removed: number of images that are not in it any more, because their files are gone.
        kept: number of images whose files are gone and that are still in it.

    Example:
        >>> AddedImages(added=3, there=1).skipped
        []
    """

    added: int = 0
    there: int = 0
    changed: list[str] = field(default_factory=list)
    skipped: list[SkippedImage] = field(default_factory=list)
    unreadable: list[ListedImage] = field(default_factory=list)
    renamed: int = 0
    removed: int = 0
    kept: int = 0


def add_files(images: ImageIndex, files: Sequence[ListedImage]) -> AddedImages:
    """Add image files to an index, decoded in parallel; what is added is stored for good batch by batch.

    Those that are there already are passed over, so a run that was killed goes on where it was; those whose size or
    time of change has become another are encoded again. A file is one item, under whatever names it is given.

    Args:
        images: the index.
        files: files whose ids differ.

    Raises:
        InputError: the index cannot be written.
    """
    return carry_out(images, compared(images._own(), files))


def carry_out(images: ImageIndex, changes: Changes) -> AddedImages:
    """Encode the new and the changed of the files that an index was compared with."""
    report = AddedImages(there=changes.there, skipped=changes.skipped)
    _copy(images, changes, report)
    to_encode = changes.to_encode
    files = [(images.folder or Path()) / image.path for image in to_encode]
    with count_steps("images", total=len(files)) as advance:
        done, began = 0, time.monotonic()
        at_a_time = min(STORED_AT_A_TIME, images.hasher.batch_size)
        for batch in images.hasher.encode_batches(files, errors="skip", batch_size=at_a_time):
            readable = [with_digest(to_encode[row], files[row]) for row in batch.rows.tolist()]
            images.store(EncodedPixels(batch.codes, batch.features), readable)
            report.changed += [image.id for image in readable if image.id in changes.changed]
            report.added += sum(image.id not in changes.changed for image in readable)
            report.unreadable += [to_encode[skipped.row] for skipped in batch.skipped]
            report.skipped += [skipped._replace(name=to_encode[skipped.row].id) for skipped in batch.skipped]
            for _ in (*readable, *batch.skipped):
                done += 1
                advance(f"{done} of {len(files)}, {done / (time.monotonic() - began):.3g} a second")
    return report


def _copy(images: ImageIndex, changes: Changes, report: AddedImages) -> None:
    """Store images under the codes of items with the same content."""
    for start in range(0, len(changes.copies), COPIED_AT_A_TIME):
        some, sources = zip(*changes.copies[start : start + COPIED_AT_A_TIME], strict=True)
        # Several may have the content of one.
        known = list(dict.fromkeys(sources))
        row_of = {source: row for row, source in enumerate(known)}
        rows = [row_of[source] for source in sources]
        codes = np.stack([item.code for item in images.index.items(known)])[rows]
        features = images._own().features_of(known)[rows] if images._own().features else None
        new = sum(image.id not in images.index for image in some)
        images.store(EncodedPixels(codes, features), some)
        report.added += new
        for image, source in zip(some, sources, strict=True):
            if image.id == source:
                report.there += 1
            elif image.id in changes.changed:
                report.changed.append(image.id)


def bring_up_to_date(
    images: ImageIndex,
    listed: Sequence[ListedImage],
    folders: Sequence[Path],
    missing: Missing = "few",
    verify: bool = False,
) -> AddedImages:
    """Add new files, encode changed ones again, and remove items of some folders whose files are gone.

    A file that was renamed or copied is known by its content, and is not computed again.

    Args:
        images: the index.
        listed: the files that there are.
        folders: folders that they are from; items of other folders stay.
        missing: choice of the items that are removed.
        verify: True to read every file, also those whose size and time of change are those in the index.

    Raises:
        InputError: more than half of the items would go, and ``few`` is asked for; nothing is changed then.
    """
    index = images._own()
    changes = compared(index, listed, verify)
    stored = {image.id for image in (*changes.to_encode, *(copy for copy, _ in changes.copies))}
    missing_files = gone(index) | unlinked(index, listed, folders)
    without_file = {name: path for name, path in missing_files.items() if name not in stored}
    renamed = {source for _, source in changes.copies} & without_file.keys()
    lost = ids_below(without_file, folders) - renamed
    if missing in ("few", "few_or_none") and lost and 2 * len(lost) > (count := items_below(index, folders)):
        if missing == "few":
            raise InputError(
                f"{len(lost)} of {count} files are gone, such as {min(lost)}: mount their disk; or --remove-missing "
                "removes them from the index, --keep-missing keeps them"
            )
        missing = "none"
    report = carry_out(images, changes)
    report.renamed = len(renamed)
    report.added -= len(renamed & {source for image, source in changes.copies if image.id not in changes.changed})
    # What is no picture any more is gone too.
    lost |= {image.id for image in report.unreadable} & changes.changed
    if missing == "none":
        report.kept = len(lost)
    else:
        report.removed = images.remove(sorted(lost))
    images.remove(sorted(renamed))
    return report
