"""Files of an index that have changed since, or are gone."""

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from deephash_pipeline.common.stores import stamp_of
from deephash_pipeline.images.batches import SkippedImage
from deephash_pipeline.search import HammingIndex
from deephash_pipeline.search.images.listing import ListedImage

STAMP = "stamp"
"""Column of the metadata: size and time of change of the file when it was encoded."""


class Compared(NamedTuple):
    """Listed images, as an index knows them.

    Attributes:
        to_encode: those that are not there, and those whose file has changed.
        changed: ids of the latter.
        there: how many others are there.
        skipped: those whose ids are there for other files.
    """

    to_encode: list[ListedImage]
    changed: set[str]
    there: int
    skipped: list[SkippedImage]


def compared(index: HammingIndex, images: Sequence[ListedImage]) -> Compared:
    """Compare listed images with the items of an index, by id and by path; changed ones get the ids that they have."""
    known = set(index)
    elsewhere = _ids_of_paths(index, {str(image.path) for image in images if image.id not in known})
    ids = [image.id if image.id in known else elsewhere.get(str(image.path)) for image in images]
    items = iter(index.metadata([name for name in ids if name is not None]))
    result = Compared([], set(), 0, [])
    there = 0
    for row, (image, name) in enumerate(zip(images, ids, strict=True)):
        stamped = image._replace(stamp=stamp_of(image.path))
        if name is None:
            result.to_encode.append(stamped)
            continue
        item = next(items)
        path, stamp = item.get("path"), item.get(STAMP)
        # Pictures of the index's own have names from its folder on.
        of_another = path is not None and os.path.isabs(path) and os.path.realpath(path) != str(image.path)
        if of_another and os.path.exists(str(path)):
            reason = f"its id is that of {path}: give it by its full path"
            result.skipped.append(SkippedImage(row, image.id, reason))
        elif of_another or (stamp is not None and stamped.stamp not in (None, stamp)):
            result.to_encode.append(stamped._replace(id=name))
            result.changed.add(name)
        else:
            there += 1
    return result._replace(there=there)


def gone(index: HammingIndex) -> list[str]:
    """Ids of items whose files are not there any more."""
    missing = {path for path in _paths(index) if os.path.isabs(path) and not os.path.lexists(path)}
    return sorted(_ids_of_paths(index, missing).values())


def _paths(index: HammingIndex) -> Iterable[str]:
    # Also of items that were removed lately.
    return map(str, index.values("path", most=len(index) + 10**9)) if "path" in index.columns else ()


def _ids_of_paths(index: HammingIndex, paths: set[str]) -> dict[str, str]:
    """Ids of the items of some paths, by path; metadata of all items are read only where a path is likely there."""
    if not paths or paths.isdisjoint(_paths(index)):
        return {}
    ids = list(index)
    found = zip(ids, index.metadata(ids), strict=True)
    return {path: str(name) for name, item in found if (path := item.get("path")) in paths}
