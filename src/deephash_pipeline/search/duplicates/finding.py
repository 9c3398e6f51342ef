"""Pictures -> groups of copies: candidates by two hashes and by features, each laid onto the other to be sure.

Byte-equal files are known by their digests. What is left is read once. Candidates are pairs that are near by pHash in
one of eight orientations, and the nearest of each by the network's features. A pair is a copy if the details of one
picture, turned, mirrored, scaled and shifted, are those of the other.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from deephash_pipeline.common.progress import count_steps
from deephash_pipeline.deephash import FeatureExtractor
from deephash_pipeline.images.batches import SkippedImage
from deephash_pipeline.images.registration import Picture, register
from deephash_pipeline.provenance import content_digest
from deephash_pipeline.search.duplicates.candidates import candidates
from deephash_pipeline.search.duplicates.fingerprints import Fingerprints, fingerprints
from deephash_pipeline.search.duplicates.groups import Group, Member, Photo, advantage, best_first, read_photo, seen
from deephash_pipeline.search.duplicates.levels import Level
from deephash_pipeline.search.duplicates.second_look import difference
from deephash_pipeline.search.images.index import ImageIndex
from deephash_pipeline.search.images.listing import ListedImage

PATIENCE = 2
"""Neighbours of a picture that are no copies before those farther away are left alone."""
REGISTERED_KEPT = 256


class Duplicates(NamedTuple):
    """What was found.

    Attributes:
        groups: groups of files of one picture, by the name of the first.
        skipped: files that cannot be read, and why.
        pictures: number of files that were read or known by their digests.
    """

    groups: list[Group]
    skipped: list[SkippedImage]
    pictures: int


def find_duplicates(
    files: Sequence[ListedImage],
    extractor: Callable[[], FeatureExtractor],
    level: Level = Level.DEFAULT,
    reference: Sequence[ListedImage] = (),
    index: ImageIndex | None = None,
) -> Duplicates:
    """Find groups of files of one picture.

    Args:
        files: files, as `list_images` gives them.
        extractor: function that gives the network, if there is a picture to compute.
        level: name of the share of a picture that may have changed.
        reference: groups are then of a file and what is the same picture here; a file that is in both is of this.
        index: index whose features of unchanged files are taken; their half precision may bring other candidates.

    Example:
        >>> find_duplicates([], extractor=lambda: None)
        Duplicates(groups=[], skipped=[], pictures=0)
    """
    photos, skipped = _photos(files, reference)
    same = _byte_equal(photos)
    prints = fingerprints([equal[0] for equal in same], extractor, index)
    skipped += [broken._replace(name=photo.name) for broken in prints.skipped for photo in same[broken.row]]
    sides = [{photo.reference for photo in same[row]} for row in prints.rows]
    asked, among = (np.array([not reference or side in both for both in sides], np.bool_) for side in (False, True))
    copies = _Copies(prints, len(same), level.agreement)
    neighbours = candidates(prints, asked, among)
    with count_steps("comparisons", total=len(neighbours)) as advance:
        for done, (row, others) in enumerate(neighbours, start=1):
            copies.connect(int(prints.rows[row]), prints.rows[others].tolist())
            advance(f"{done} of {len(neighbours)}")
    broken_rows = {broken.row for broken in prints.skipped}
    connected: dict[int, dict[Photo, int]] = defaultdict(dict)
    for row, equal in enumerate(same):
        if row not in broken_rows:
            connected[copies.root(row)].update(dict.fromkeys(equal, row))
    groups = [
        _group(found, copies)
        for found in connected.values()
        if len(found) > 1 and (not reference or len({photo.reference for photo in found}) > 1)
    ]
    return Duplicates(sorted(groups, key=lambda group: group.members[0].photo.name), skipped, len(photos))


class _Copies:
    """Which pictures are connected by copies."""

    def __init__(self, prints: Fingerprints, rows: int, least: float) -> None:
        self.least = least
        self._parents = list(range(rows))
        self._prints, self._places = prints, {row: place for place, row in enumerate(prints.rows.tolist())}
        self._known: dict[tuple[int, int], float] = {}
        self._picture = lru_cache(REGISTERED_KEPT)(self._made)

    def _made(self, row: int) -> Picture:
        return Picture(self._prints.greys[self._places[row]].astype(np.float32) / np.float32(255))

    def agreement(self, one: int, other: int) -> float:
        """Correlation of two pictures less the share of what has changed."""
        pair = min(one, other), max(one, other)
        if pair not in self._known:
            found = register(*map(self._picture, pair))
            self._known[pair] = found.correlation - found.changed
        return self._known[pair]

    def connect(self, row: int, others: list[int]) -> None:
        """Connect a picture with its neighbours, nearest first, until some are none; what is connected is passed."""
        patience = PATIENCE
        for other in others:
            if self.root(row) == self.root(other):
                continue
            if self.agreement(row, other) >= self.least:
                self._parents[self.root(other)] = self.root(row)
            elif not (patience := patience - 1):
                return

    def root(self, row: int) -> int:
        """The same row for all that are connected."""
        while self._parents[row] != row:
            self._parents[row] = row = self._parents[self._parents[row]]
        return row


def _group(found: dict[Photo, int], copies: _Copies) -> Group:
    """Compare files of a group, by their pictures, with the best of them."""
    found = {seen(photo): row for photo, row in found.items()}
    (best, *others), reason = best_first(list(found))
    members = [Member(best, "keep", 1.0, reason)]
    for photo in others:
        equal = found[photo] == found[best]
        agrees = 1.0 if equal else copies.agreement(found[photo], found[best])
        if photo.reference:
            members.append(Member(photo, "keep", agrees, "in the reference"))
        elif equal:
            members.append(Member(photo, "remove", agrees, "equal bytes"))
        elif photo.pages > 1:
            members.append(Member(photo, "look", agrees, "only the first of its pages is compared"))
        elif agrees < copies.least:
            members.append(Member(photo, "look", agrees, "a copy of a copy: look at it"))
        # What the loosest level takes may have text over it.
        elif doubt := advantage(photo, best) or difference(best, photo, copies.least >= Level.DEFAULT.agreement):
            members.append(Member(photo, "look", agrees, doubt))
        else:
            members.append(Member(photo, "remove", agrees, "same picture"))
    return Group(members)


def _photos(files: Sequence[ListedImage], reference: Sequence[ListedImage]) -> tuple[list[Photo], list[SkippedImage]]:
    """Sizes and dates of all files, each once, whatever names it has: the name of a hard link frees nothing."""
    photos: dict[tuple[int, int], Photo] = {}
    skipped = []
    for row, (image, of_reference) in enumerate([*((i, True) for i in reference), *((i, False) for i in files)]):
        try:
            status = image.path.stat()
            if (file := (status.st_dev, status.st_ino)) not in photos:
                photos[file] = read_photo(image.id, image.path, of_reference)
        except Exception as error:  # a damaged file can make Pillow's readers raise anything
            skipped.append(SkippedImage(row, image.id, " ".join(str(error).split()) or type(error).__name__))
    return list(photos.values()), skipped


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
