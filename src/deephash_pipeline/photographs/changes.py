"""Changes of a folder against an index: files that are new, changed, renamed or gone."""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from deephash_pipeline.common.stores import stamp_of
from deephash_pipeline.hamming import HammingIndex
from deephash_pipeline.hamming.texts import one_form
from deephash_pipeline.images.batches import SkippedImage
from deephash_pipeline.photographs.listing import ListedImage
from deephash_pipeline.provenance import content_digest

STAMP = "stamp"
"""Column of the metadata: size and time of change of the file when it was encoded."""
DIGEST_COLUMN = "digest"
"""Column of the metadata: of the content of that file."""
OF_THE_FILE = (STAMP, DIGEST_COLUMN)
"""Columns that are no answer to a question about an image."""


class Changes(NamedTuple):
    """Listed images, as an index knows them.

    Attributes:
        to_encode: images that are not there, and those whose file or label has changed.
        changed: ids of the latter, also where their content is known.
        copies: images among both whose content the index has already, with the id of an item of it.
        there: number of others that are there.
        skipped: images whose ids are there for other files.
    """

    to_encode: list[ListedImage]
    changed: set[str]
    copies: list[tuple[ListedImage, str]]
    there: int
    skipped: list[SkippedImage]


def compared(index: HammingIndex, images: Sequence[ListedImage], verify: bool = False) -> Changes:
    """Compare listed images with the items of an index, by id and by path; changed ones get the ids that they have.

    Args:
        index: index whose items have the metadata `path`, `stamp` and `digest`.
        images: images whose ids differ.
        verify: True to read every file, also those whose size and time of change are those in the index.
    """
    known = set(index)
    elsewhere = _ids_by(index, "path", {str(image.path) for image in images if image.id not in known})
    ids = [image.id if image.id in known else elsewhere.get(str(image.path)) for image in images]
    names = list(dict.fromkeys(name for name in ids if name is not None))
    items = dict(zip(names, index.metadata(names), strict=True))
    given: dict[str, str] = {}
    result = Changes([], set(), [], 0, [])
    there = 0
    for row, (image, name) in enumerate(zip(images, ids, strict=True)):
        stamped = image._replace(stamp=stamp_of(image.path))
        if name is None:
            result.to_encode.append(stamped)
            continue
        item = items[name]
        path, stamp = item.get("path"), item.get(STAMP)
        # Pictures of the index's own have names from its folder on.
        of_another = path is not None and os.path.isabs(path) and os.path.realpath(path) != str(image.path)
        # Of two files, one may have the name of an item and the other its path.
        is_there = of_another and os.path.exists(str(path))
        owner = path if is_there else given.setdefault(name, str(image.path))
        if owner != str(image.path):
            reason = f"its id is that of {owner}: give it by its full path"
            result.skipped.append(SkippedImage(row, image.id, reason))
        elif (
            of_another
            or (image.labelled and not has_label(item, image.label))
            or (stamp is not None and stamped.stamp not in (None, stamp))
            or (
                verify
                and stamped.stamp is not None
                and with_digest(stamped, image.path).digest != item.get(DIGEST_COLUMN)
            )
        ):
            result.to_encode.append(stamped._replace(id=name))
            result.changed.add(name)
        else:
            there += 1
    copies = [
        (image, source)
        for image, source in _copies(index, result.to_encode)
        # What is about to be stored anew is no source for others.
        if source == image.id or source not in result.changed
    ]
    copied = {image.id for image, _ in copies}
    to_encode = [image for image in result.to_encode if image.id not in copied]
    return result._replace(to_encode=to_encode, copies=copies, there=there)


def has_label(metadata: Mapping[str, Any], label: str | None) -> bool:
    """Tell whether the metadata of an item have a label, however it is composed; None for none.

    Example:
        >>> has_label({"label": "café"}, "cafe\N{COMBINING ACUTE ACCENT}"), has_label({}, None)
        (True, True)
    """
    return bool(metadata.get("label") == (label and one_form(label)))


def with_digest(image: ListedImage, path: Path) -> ListedImage:
    """Digest the content of a file that has not changed since it was stamped; of another nothing is known."""
    try:
        digest = content_digest(path)
    except OSError:
        return image
    return image._replace(digest=digest) if stamp_of(path) == image.stamp else image


def _copies(index: HammingIndex, images: Sequence[ListedImage]) -> list[tuple[ListedImage, str]]:
    """Those of some images whose content an index has, with the id of an item of it."""
    sizes = {_size(stamp) for stamp in _values(index, STAMP)}
    digested = [with_digest(image, image.path) for image in images if image.stamp and _size(image.stamp) in sizes]
    ids = _ids_by(index, DIGEST_COLUMN, {image.digest for image in digested if image.digest is not None})
    return [(image, ids[image.digest]) for image in digested if image.digest in ids]


def gone(index: HammingIndex) -> dict[str, str]:
    """Items whose files are not there any more: path by id, in the order of the ids."""
    missing = {path for path in _values(index, "path") if os.path.isabs(path) and _is_missing(path)}
    return {name: path for path, name in sorted(_ids_by(index, "path", missing).items(), key=lambda pair: pair[1])}


def unlinked(index: HammingIndex, listed: Sequence[ListedImage], folders: Sequence[Path]) -> dict[str, str]:
    """Items that a link in some folders led to, whose names lead nowhere any more: path by id."""
    known, above = {image.id for image in listed}, tuple(os.path.join(folder, "") for folder in folders if folder.name)
    names = [name for name in map(str, index) if name.startswith(above) and name not in known and _is_missing(name)]
    paths = {str(image.path) for image in listed}
    items = zip(names, index.metadata(names), strict=True) if names else ()
    found = {name: str(item["path"]) for name, item in items if os.path.isabs(item.get("path") or "")}
    return {name: path for name, path in found.items() if path not in paths and os.path.realpath(name) != path}


def _is_missing(path: str) -> bool:
    """Whether there is no such file, or a link or a folder; one in a folder that cannot be read may be there."""
    try:
        return not stat.S_ISREG(os.lstat(path).st_mode)
    except OSError as error:
        return isinstance(error, FileNotFoundError | NotADirectoryError)


def items_below(index: HammingIndex, folders: Sequence[Path]) -> int:
    """Count the items whose files are in some folders, or were."""
    ids = list(index)
    paths = {str(name): item["path"] for name, item in zip(ids, index.metadata(ids), strict=True) if item.get("path")}
    return len(ids_below(paths, folders))


def ids_below(paths: Mapping[str, str], folders: Sequence[Path]) -> set[str]:
    """Ids, of those whose paths are given, of files in some folders, or in what links there lead to.

    Example:
        >>> sorted(ids_below({"photos/nas/1.png": "/nas/1.png", "2.png": "/2.png"}, [Path("photos")]))
        ['photos/nas/1.png']
    """
    places = [os.path.realpath(folder) for folder in folders]
    names = [os.path.abspath(folder) for folder in folders]
    return {name for name, path in paths.items() if is_below(path, places) or is_below(os.path.abspath(name), names)}


def is_below(path: str, folders: Sequence[str]) -> bool:
    """Tell whether a path is in one of some folders, at any depth.

    Example:
        >>> is_below("/photos/cat/1.png", ["/photos"]), is_below("/photos2/1.png", ["/photos"])
        (True, False)
    """
    return any(path.startswith(os.path.join(folder, "")) for folder in folders)


def _size(stamp: str) -> str:
    return stamp.partition(":")[0]


def _values(index: HammingIndex, column: str) -> Iterable[str]:
    # Also of items that were removed lately.
    return map(str, index.values(column, most=len(index) + 10**9)) if column in index.columns else ()


def _ids_by(index: HammingIndex, column: str, wanted: set[str]) -> dict[str, str]:
    """Ids of the items that have one of some values, by value; all metadata are read only if one is likely there."""
    if not wanted or wanted.isdisjoint(_values(index, column)):
        return {}
    ids = list(index)
    found = zip(ids, index.metadata(ids), strict=True)
    return {value: str(name) for name, item in found if (value := item.get(column)) in wanted}
