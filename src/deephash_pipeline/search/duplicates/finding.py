"""Pictures -> groups of copies: candidates by two hashes and by features, each laid onto the other to be sure.

Byte-equal files are known by their digests. What is left is read once. Candidates are pairs that are near by pHash in
one of eight orientations, and the nearest of each by the network's features. A pair is a copy if the details of one
picture, turned, mirrored, scaled and shifted, are those of the other.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.progress import count_steps
from deephash_pipeline.deephash import FeatureExtractor
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.hashing.srh import unit_rows
from deephash_pipeline.images import perceptual_hash
from deephash_pipeline.images.batches import ImageShape, SkippedImage, image_batches
from deephash_pipeline.images.registration import LONGER_SIDE, Picture, register, resized, scaled
from deephash_pipeline.provenance import content_digest
from deephash_pipeline.retrieval import pack_bits
from deephash_pipeline.search import ByFeatures, HammingIndex
from deephash_pipeline.search.duplicates.groups import Group, Member, Photo, best_first, read_photo
from deephash_pipeline.search.duplicates.known import known_features
from deephash_pipeline.search.duplicates.levels import Level
from deephash_pipeline.search.images.index import ImageIndex
from deephash_pipeline.search.images.listing import ListedImage

HASH_RADIUS, MOST_BY_HASH = 10, 10
"""Bits of pHash in which candidates differ, and how many of them a picture has at most."""
FEATURE_BITS, SHORTLIST, NEIGHBOURS = 256, 64, 16
"""Of a picture's neighbours by features: bits of LSH, how many by them, how many by cosine."""
PATIENCE = 2
"""Neighbours of a picture that are no copies before those farther away are left alone."""
FLAT = 2.0
"""Standard deviation of the greys, of 255, up to which a picture is like any other of one colour."""
DECODED_AT_A_TIME = 64
REGISTERED_KEPT = 256
GREY = np.array([0.299, 0.587, 0.114], dtype=np.float32)


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


class Fingerprints(NamedTuple):
    """What is kept of pictures.

    Attributes:
        rows: numbers of the files that they are, int64 (n,).
        features: features of unit length, float16 (n, dimension).
        hashes: pHash in eight orientations, uint8 (n, 8, 8).
        greys: uint8 (height, width) each, the longer side of 64 pixels.
        skipped: files that cannot be decoded.
    """

    rows: NDArray[np.int64]
    features: NDArray[np.float16]
    hashes: NDArray[np.uint8]
    greys: list[NDArray[np.uint8]]
    skipped: list[SkippedImage]


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
        elif agrees >= copies.least:
            members.append(Member(photo, "remove", agrees, "same picture"))
        else:
            members.append(Member(photo, "look", agrees, "a copy of a copy: look at it"))
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


def fingerprints(
    photos: Sequence[Photo], extractor: Callable[[], FeatureExtractor], index: ImageIndex | None = None
) -> Fingerprints:
    """Read pictures once, each for all that they are compared by; a single one is compared with nothing."""
    rows, features, hashes, greys, skipped = [], [], [], [], []
    with count_steps("pictures", total=len(photos)) as advance:
        network = extractor() if len(photos) > 1 else None
        known = known_features(index, network, {photo.path for photo in photos}) if index and network else {}
        shape: ImageShape = (1,) if network is None else network.image_shape
        to_read = [] if network is None else [photo.path for photo in photos]
        for batch in image_batches(to_read, shape, DECODED_AT_A_TIME, "skip"):
            assert network is not None
            rows += batch.rows.tolist()
            skipped += [broken._replace(name=photos[broken.row].name) for broken in batch.skipped]
            stored = [known.get(photos[row].path) for row in batch.rows]
            computed = iter(unit_rows(network(batch.pixels[[z is None for z in stored]])).astype(np.float16))
            features += [next(computed) if z is None else z for z in stored]
            weights = GREY if network.image_shape[0] == len(GREY) else np.ones(1, np.float32)
            grey = np.einsum("nchw,c->nhw", batch.pixels, weights)
            for photo, one in zip((photos[row] for row in batch.rows), grey, strict=True):
                hashes.append(resized(one, (perceptual_hash.SIDE, perceptual_hash.SIDE)))
                size = scaled((photo.width, photo.height), LONGER_SIDE / max(photo.width, photo.height))
                greys.append(np.rint(resized(one, size)).astype(np.uint8))
            for _ in (*batch.rows, *batch.skipped):
                advance(f"{len(rows) + len(skipped)} of {len(photos)}")
    joined = np.stack(features) if features else np.empty((0, 1), np.float16)
    squares = np.array(hashes, dtype=np.float32).reshape(-1, perceptual_hash.SIDE, perceptual_hash.SIDE)
    packed = perceptual_hash.perceptual_hashes(squares)
    return Fingerprints(np.array(rows, dtype=np.int64), joined, packed, greys, skipped)


def candidates(prints: Fingerprints, asked: NDArray[np.bool_], among: NDArray[np.bool_]) -> list[tuple[int, list[int]]]:
    """Pictures that are asked for, and those to look among that may be copies of each; no flat ones.

    They are first those near by pHash, each by itself, and then the nearest by features, of which most fail.
    """
    detailed = np.array([grey.std() > FLAT for grey in prints.greys], dtype=np.bool_)
    asked_rows, among_rows = np.flatnonzero(asked & detailed), np.flatnonzero(among & detailed)
    if not (len(asked_rows) and len(among_rows)):
        return []
    return [
        *((one, [other]) for one, other in _near_by_hash(prints.hashes, asked_rows, among_rows)),
        *_near_by_features(prints.features, asked_rows, among_rows),
    ]


def whitened(z: NDArray[np.float32]) -> NDArray[np.float32]:
    """Features of unit length in which what many pictures share counts less: it tells kinds apart, and not copies.

    Example:
        >>> z = whitened(np.eye(2, dtype=np.float32))
        >>> (z @ z.T).round(1).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
    """
    centred = z - z.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(z))
    # Of few pictures most directions are unknown.
    ridge = max(variances.sum() / min(z.shape), np.finfo(np.float32).tiny)
    return unit_rows(centred @ (directions / np.sqrt(np.maximum(variances, 0) + ridge)))


def _near_by_hash(
    hashes: NDArray[np.uint8], asked: NDArray[np.int64], among: NDArray[np.int64]
) -> Iterator[tuple[int, int]]:
    """Pairs whose pHash is near in one of the orientations, for each picture the nearest of them."""
    plain = HammingIndex(perceptual_hash.BITS)
    plain.add(asked, hashes[asked, 0])
    found = []
    for orientation in range(perceptual_hash.ORIENTATIONS):
        turned = HammingIndex(perceptual_hash.BITS)
        turned.add(among, hashes[among, orientation])
        found += [np.stack([b.distances, b.first, b.second], axis=1) for b in plain.pairs(HASH_RADIUS, turned)]
    near = np.concatenate([np.empty((0, 3), np.int64), *found])
    counts = np.zeros(len(hashes), dtype=np.int64)
    for _, one, other in near[np.argsort(near[:, 0], kind="stable")].tolist():
        if one != other and counts[one] < MOST_BY_HASH:
            counts[one] += 1
            yield one, other


def _near_by_features(
    features: NDArray[np.float16], asked: NDArray[np.int64], among: NDArray[np.int64]
) -> Iterator[tuple[int, list[int]]]:
    """Each picture and the nearest to it by features."""
    z = whitened(features.astype(np.float32))
    codes = pack_bits(HASH_FUNCTIONS["lsh_centred"](FEATURE_BITS).fit(z).transform(z))
    index = HammingIndex(FEATURE_BITS, features=z.shape[1])
    index.add(among, codes[among], features=z[among])
    answers = index.search(codes[asked], NEIGHBOURS + 1, rerank=ByFeatures(z[asked], SHORTLIST))
    for row, names in zip(asked.tolist(), answers.ids.tolist(), strict=True):
        yield row, [other for other in names if other != row]
