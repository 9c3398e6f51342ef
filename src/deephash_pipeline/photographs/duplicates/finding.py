"""Pictures -> groups of copies: candidates by low frequencies and by features, each laid onto the other to be sure.

Byte-equal files are known by their digests. What is left is read once. Candidates are pairs that are alike in low
frequencies in one of eight orientations, and the nearest of each by the network's features. A pair is a copy if the
details of one picture, turned, mirrored, scaled and shifted, are those of the other.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deephash_pipeline.common.progress import count_steps, track
from deephash_pipeline.images.batches import SkippedImage
from deephash_pipeline.photographs.duplicates.candidates import candidates
from deephash_pipeline.photographs.duplicates.fingerprints import Fingerprints, fingerprints
from deephash_pipeline.photographs.duplicates.groups import Group, Photo, file_key, read_photo
from deephash_pipeline.photographs.duplicates.kept import Kept, Pair, read_kept, write_kept
from deephash_pipeline.photographs.duplicates.levels import Level
from deephash_pipeline.photographs.duplicates.network import NETWORK_OF_PHOTOGRAPHS
from deephash_pipeline.photographs.duplicates.proposals import proposed
from deephash_pipeline.photographs.duplicates.registration import Registration, register
from deephash_pipeline.photographs.duplicates.small_picture import Picture
from deephash_pipeline.photographs.index import ImageIndex
from deephash_pipeline.photographs.listing import ListedImage
from deephash_pipeline.provenance import content_digest

if TYPE_CHECKING:
    from deephash_pipeline.deephash import FeatureExtractor

PATIENCE = 2
"""Neighbours of a picture that are no copies before those farther away are left alone."""
REGISTERED_KEPT = 256

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Duplicates:
    """What was found.

    Attributes:
        groups: groups of files of one picture, by the name of the first.
        skipped: files that cannot be read, and why.
        pictures: number of files that were read or known by their digests.
    """

    groups: list[Group]
    skipped: list[SkippedImage]
    pictures: int


def find_duplicates(  # noqa: PLR0913 - the folders of a user, and what is known of them
    files: Sequence[ListedImage],
    extractor: Callable[[], "FeatureExtractor"] = NETWORK_OF_PHOTOGRAPHS,
    level: Level = Level.DEFAULT,
    reference: Sequence[ListedImage] = (),
    index: ImageIndex | None = None,
    keep_from: Sequence[Path] = (),
    told: Callable[[Photo, Photo], None] = lambda one, other: None,
) -> Duplicates:
    """Find groups of files of one picture; nothing is deleted.

    Args:
        files: files, as `list_images` gives them.
        extractor: function that gives the network, if there is a picture to compute.
        level: name of the share of a picture that may have changed.
        reference: groups are then of a file and what is the same picture here; a file that is in both is of this.
        index: index whose features of unchanged files are taken; their half precision may bring other candidates.
        keep_from: folders whose files are kept before others, those of the first before those of the second.
        told: function that is told of each two files that are found to be copies, when they are found.

    Example:
        >>> find_duplicates([])
        Duplicates(groups=[], skipped=[], pictures=0)
    """
    logger.info("files to look at: %d", len(files) + len(reference))
    kept = read_kept(None if index is None else index.folder)
    before, keys = (len(kept), kept.network), set[str]()
    try:
        photos, skipped = _photos(files, reference, kept.facts)
        keys.update(photo.key for photo in photos)
        photos = [photo._replace(preferred=_preferred(photo.path, keep_from)) for photo in photos if not photo.raw]
        same = _byte_equal(photos)
        for equal in same:
            for photo in equal[1:]:
                told(equal[0], photo)
        prints = fingerprints([equal[0] for equal in same], extractor, index, kept)
        skipped += [broken._replace(name=photo.name) for broken in prints.skipped for photo in same[broken.row]]
        copies = Copies(prints, len(same), level.agreement, [equal[0].key for equal in same], kept.pairs)
        _connect(copies, prints, same, bool(reference), told)
        groups = _proposals(copies, prints, same, bool(reference), kept)
    finally:
        # Also of a look that is broken off.
        if index is not None and (len(kept), kept.network) != before:
            write_kept(index.folder, kept, keys, max(len(index), len(keys)))
    return Duplicates(sorted(groups, key=lambda group: group.members[0].photo.name), skipped, len(photos))


def _connect(
    copies: "Copies",
    prints: Fingerprints,
    same: Sequence[list[Photo]],
    has_reference: bool,
    told: Callable[[Photo, Photo], None],
) -> None:
    """Connect each picture that may be a copy with those that it is one of."""
    sides = [{photo.reference for photo in same[row]} for row in prints.rows]
    asked, among = (np.array([not has_reference or side in both for both in sides], np.bool_) for side in (False, True))
    neighbours = candidates(prints, asked, among)
    with count_steps("comparisons", total=len(neighbours)) as advance:
        for done, (row, others) in enumerate(neighbours, start=1):
            one = int(prints.rows[row])
            for other in copies.connect(one, prints.rows[others].tolist()):
                told(same[one][0], same[other][0])
            advance(f"{done} of {len(neighbours)}")


def _proposals(
    copies: "Copies", prints: Fingerprints, same: Sequence[list[Photo]], has_reference: bool, kept: Kept
) -> list[Group]:
    """Groups of what is connected, or of equal bytes; with a reference, those that have files on both sides."""
    broken = {broken.row for broken in prints.skipped}
    connected: dict[int, dict[Photo, int]] = defaultdict(dict)
    for row, equal in enumerate(same):
        if row not in broken:
            connected[copies.root(row)].update(dict.fromkeys(equal, row))
    several = [
        found
        for found in connected.values()
        if len(found) > 1 and (not has_reference or len({photo.reference for photo in found}) > 1)
    ]
    return [proposed(found, copies.registered, kept) for found in track(several, "groups", len(several))]


class Copies:
    """Which pictures are connected by copies.

    Args:
        prints: what is compared.
        rows: number of pictures.
        least: least agreement of copies.
        keys: names of the pictures.
        pairs: how two of them agree, the one before the other as they were listed; what is found is added.
    """

    def __init__(
        self,
        prints: Fingerprints,
        rows: int,
        least: float,
        keys: Sequence[str] = (),
        pairs: dict[Pair, Registration] | None = None,
    ) -> None:
        self.least = least
        self._parents = list(range(rows))
        self._prints, self._places = prints, {row: place for place, row in enumerate(prints.rows.tolist())}
        self._keys = keys or list(map(str, range(rows)))
        self._pairs = {} if pairs is None else pairs
        self._picture = lru_cache(REGISTERED_KEPT)(self._made)

    def _made(self, row: int) -> Picture:
        return Picture(self._prints.greys[self._places[row]].astype(np.float32) / np.float32(255))

    def registered(self, one: int, other: int) -> Registration:
        """How two pictures agree, and where the one lies on the other."""
        names = self._keys[one], self._keys[other]
        if names in self._pairs:
            return self._pairs[names]
        # Another look may have listed them in another order.
        if names[::-1] not in self._pairs:
            first, second = min(one, other), max(one, other)
            found = register(self._picture(first), self._picture(second))
            self._pairs[self._keys[first], self._keys[second]] = found
            return self.registered(one, other)
        return self._pairs[names[::-1]].turned_round()

    def connect(self, row: int, others: list[int]) -> list[int]:
        """Connect a picture with its neighbours, nearest first, until some are none; return those that it was not."""
        patience, connected = PATIENCE, []
        for other in others:
            if self.root(row) == self.root(other):
                continue
            if self.registered(row, other).agreement >= self.least:
                self._parents[self.root(other)] = self.root(row)
                connected.append(other)
            elif not (patience := patience - 1):
                break
        return connected

    def root(self, row: int) -> int:
        """The same row for all that are connected."""
        while self._parents[row] != row:
            self._parents[row] = row = self._parents[self._parents[row]]
        return row


def _photos(
    files: Sequence[ListedImage], reference: Sequence[ListedImage], facts: dict[str, Photo]
) -> tuple[list[Photo], list[SkippedImage]]:
    """Sizes and dates of all files, each once, whatever names it has: the name of a hard link frees nothing.

    Args:
        files: files that may be copies.
        reference: files that they may be copies of.
        facts: what is known of files by their keys; what is read is added.
    """
    photos: dict[tuple[int, int], Photo] = {}
    skipped: list[SkippedImage] = []
    listed = [*((image, True) for image in reference), *((image, False) for image in files)]
    for row, (image, of_reference) in enumerate(track(listed, "files", len(listed))):
        try:
            status = image.path.stat()
            if (file := (status.st_dev, status.st_ino)) in photos:
                continue
            if (key := file_key(image.path)) not in facts:
                read = read_photo(image.id, image.path)
                key, facts[read.key] = read.key, read
            photos[file] = facts[key]._replace(name=image.id, path=image.path, reference=of_reference, key=key)
        except Exception as error:  # a damaged file can make Pillow's readers raise anything
            skipped.append(SkippedImage(row, image.id, " ".join(str(error).split()) or type(error).__name__))
    raw = [photo.name for photo in photos.values() if photo.raw]
    if raw:
        logger.warning("raw files that are passed over, being originals: %d, such as %s", len(raw), ascii(raw[0])[1:-1])
    return list(photos.values()), skipped


def _preferred(path: Path, folders: Sequence[Path]) -> int:
    """Number of the first folder that a file is in; as many as there are for none."""
    return next((row for row, folder in enumerate(folders) if path.is_relative_to(folder.resolve())), len(folders))


def _byte_equal(photos: Sequence[Photo]) -> list[list[Photo]]:
    """Files by their content; only those of equal size are read."""
    sizes = defaultdict(list)
    for photo in photos:
        sizes[photo.bytes].append(photo)
    contents: dict[tuple[int, str], list[Photo]] = defaultdict(list)
    for photo in photos:
        alone = len(sizes[photo.bytes]) == 1
        contents[photo.bytes, "" if alone else content_digest(photo.path)].append(photo)
    return list(contents.values())
