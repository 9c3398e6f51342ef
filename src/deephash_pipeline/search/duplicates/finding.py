"""Pictures -> groups of copies: candidates by two hashes and by features, each laid onto the other to be sure.

Byte-equal files are known by their digests. What is left is read once. Candidates are pairs that are near by pHash in
one of eight orientations, and the nearest of each by the network's features. A pair is a copy if the details of one
picture, turned, mirrored, scaled and shifted, are those of the other.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from deephash_pipeline.common.progress import count_steps
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.images import perceptual_hash
from deephash_pipeline.images.batches import SkippedImage, image_batches
from deephash_pipeline.images.registration import LONGER_SIDE, Picture, register
from deephash_pipeline.provenance import content_digest
from deephash_pipeline.retrieval import pack_bits
from deephash_pipeline.search import ByFeatures, HammingIndex
from deephash_pipeline.search.duplicates.groups import Group, Member, Photo, best_first, read_photo
from deephash_pipeline.search.images.listing import ListedImage

if TYPE_CHECKING:
    from deephash_pipeline.deephash import FeatureExtractor

Level = Literal["strict", "default", "loose"]
AGREEMENT: dict[Level, float] = {"strict": 0.85, "default": 0.75, "loose": 0.35}
"""Least agreement of a copy, correlation less the share of what has changed."""
HASH_RADIUS, MOST_BY_HASH = 10, 10
"""Bits of pHash in which candidates differ, and how many of them a picture has at most."""
FEATURE_BITS, SHORTLIST, NEAREST, FARTHEST = 256, 64, 2, 0.5
"""Of a picture's neighbours by features: bits of LSH, neighbours by them, candidates, their largest cosine distance."""
DECODED_AT_A_TIME = 64
REGISTERED_KEPT = 256
GREY = np.array([0.299, 0.587, 0.114], dtype=np.float32)


class Duplicates(NamedTuple):
    """What was found.

    Attributes:
        groups: of files of one picture, by the name of the first.
        skipped: files that cannot be read, and why.
        pictures: how many files were read or known by their digests.
    """

    groups: list[Group]
    skipped: list[SkippedImage]
    pictures: int


class Fingerprints(NamedTuple):
    """What is kept of pictures.

    Attributes:
        rows: which of the files they are, int64 (n,).
        features: of unit length, float16 (n, dimension).
        hashes: pHash in eight orientations, uint8 (n, 8, 8).
        greys: uint8 (height, width) each, the longer side of 64 pixels.
        skipped: what cannot be decoded.
    """

    rows: NDArray[np.int64]
    features: NDArray[np.float16]
    hashes: NDArray[np.uint8]
    greys: list[NDArray[np.uint8]]
    skipped: list[SkippedImage]


def find_duplicates(
    files: Sequence[ListedImage],
    extractor: Callable[[], "FeatureExtractor"],
    level: Level = "default",
    reference: Sequence[ListedImage] = (),
) -> Duplicates:
    """Find groups of files of one picture.

    Args:
        files: as `list_images` gives them.
        extractor: gives the network, if there is a picture to compute.
        level: how much of a picture may have changed.
        reference: groups are then of a file and what is the same picture here; a file that is in both is of this.

    Example:
        >>> find_duplicates([], extractor=lambda: None)
        Duplicates(groups=[], skipped=[], pictures=0)
    """
    photos, skipped = _photos(files, reference)
    same = _byte_equal(photos)
    across = bool(reference)
    prints = _fingerprints(photos, [equal[0] for equal in same], extractor)
    skipped += prints.skipped
    members = [same[row] for row in prints.rows.tolist()]
    picture = lru_cache(REGISTERED_KEPT)(lambda row: Picture(prints.greys[row].astype(np.float32) / 255))
    sides = [{photo.reference for photo in equal} for equal in members]
    agreements: dict[tuple[int, int], float] = {}

    def agreement(one: int, other: int) -> float:
        pair = min(one, other), max(one, other)
        if pair not in agreements:
            agreements[pair] = float(np.subtract(*register(picture(pair[0]), picture(pair[1]))))
        return agreements[pair]

    parents = list(range(len(members)))

    def root(row: int) -> int:
        while parents[row] != row:
            parents[row] = row = parents[parents[row]]
        return row

    asked = np.array([not across or False in side for side in sides])
    among = np.array([not across or True in side for side in sides])
    pairs = _candidates(prints, asked, among)
    with count_steps("pairs", total=len(pairs)) as advance:
        for done, (one, other) in enumerate(pairs, start=1):
            # What is in a group already is not looked at again.
            if root(one) != root(other) and agreement(one, other) >= AGREEMENT[level]:
                parents[root(other)] = root(one)
            advance(f"{done} of {len(pairs)}")
    connected = defaultdict(list)
    for row in range(len(members)):
        connected[root(row)].append(row)
    groups = []
    for rows in connected.values():
        found = {photo: row for row in rows for photo in members[row]}
        if len(found) < 2 or (across and len({photo.reference for photo in found}) < 2):
            continue
        groups.append(_group(found, agreement, AGREEMENT[level]))
    groups.sort(key=lambda group: group.members[0].photo.name)
    return Duplicates(groups, skipped, len(photos))


def _group(found: dict[Photo, int], agreement: Callable[[int, int], float], least: float) -> Group:
    """Compare files of a group with the best of them."""
    (best, *others), reason = best_first(list(found))
    members = [Member(best, "keep", 1.0, reason)]
    for photo in others:
        equal = found[photo] == found[best]
        agrees = 1.0 if equal else agreement(found[photo], found[best])
        if photo.reference:
            members.append(Member(photo, "keep", agrees, "in the reference"))
        elif equal:
            members.append(Member(photo, "remove", agrees, "equal bytes"))
        elif agrees >= least:
            members.append(Member(photo, "remove", agrees, f"same picture, agreement {agrees:.2f}"))
        else:
            members.append(Member(photo, "look", agrees, "copy of a copy: look at it"))
    return Group(members)


def _photos(files: Sequence[ListedImage], reference: Sequence[ListedImage]) -> tuple[list[Photo], list[SkippedImage]]:
    """Sizes and dates of all files, each once."""
    photos: dict[Path, Photo] = {}
    skipped = []
    for row, (image, of_reference) in enumerate([*((i, True) for i in reference), *((i, False) for i in files)]):
        if image.path in photos:
            continue
        try:
            photos[image.path] = read_photo(image.id, image.path, of_reference)
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


def _fingerprints(
    photos: Sequence[Photo], firsts: Sequence[Photo], extractor: Callable[[], "FeatureExtractor"]
) -> Fingerprints:
    rows, features, hashes, greys, skipped = [], [], [], [], []
    if len(firsts) > 1 or len(photos) > 1:
        network = extractor()
        shape = network.image_shape
        with count_steps("pictures", total=len(firsts)) as advance:
            done = 0
            for batch in image_batches([photo.path for photo in firsts], shape, DECODED_AT_A_TIME, errors="skip"):
                z = network(batch.pixels)
                features.append((z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-9)).astype(np.float16))
                grey = np.einsum("nchw,c->nhw", batch.pixels, GREY if shape[0] == 3 else GREY[:1] / GREY[0])
                squares = [_resized(one, (perceptual_hash.SIDE, perceptual_hash.SIDE)) for one in grey]
                hashes += [perceptual_hash.perceptual_hashes(np.stack(squares))] if squares else []
                for row, one in zip(batch.rows.tolist(), grey, strict=True):
                    photo = firsts[row]
                    scale = LONGER_SIDE / max(photo.width, photo.height)
                    size = (max(8, round(photo.width * scale)), max(8, round(photo.height * scale)))
                    greys.append(np.rint(_resized(one, size)).clip(0, 255).astype(np.uint8))
                rows += batch.rows.tolist()
                skipped += [broken._replace(name=firsts[broken.row].name) for broken in batch.skipped]
                for _ in (*batch.rows, *batch.skipped):
                    done += 1
                    advance(f"{done} of {len(firsts)}")
    joined = np.concatenate(features) if features else np.empty((0, 1), np.float16)
    packed = np.concatenate(hashes) if hashes else np.empty((0, perceptual_hash.ORIENTATIONS, 8), np.uint8)
    return Fingerprints(np.array(rows, dtype=np.int64), joined, packed, greys, skipped)


def _resized(grey: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float32]:
    return np.asarray(Image.fromarray(grey).resize(size, Image.Resampling.BILINEAR))


def _candidates(
    prints: Fingerprints, asked: NDArray[np.bool_], among: NDArray[np.bool_]
) -> list[tuple[int, int]]:
    """Pairs that may be copies, of one asked for and one of those to look among, the lower row first; none is flat."""
    detailed = np.array([not Picture(grey.astype(np.float32) / 255).flat for grey in prints.greys])
    asked, among = (np.flatnonzero(rows & detailed) for rows in (asked, among))
    if not (len(asked) and len(among)):
        return []
    pairs = chain(_near_by_hash(prints.hashes, asked, among), _near_by_features(prints.features, asked, among))
    return sorted({(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]})


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
) -> Iterator[tuple[int, int]]:
    """Each picture and the nearest to it by centred features."""
    z = features.astype(np.float32)
    z -= z.mean(axis=0)
    z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-9)
    codes = pack_bits(HASH_FUNCTIONS["lsh"](FEATURE_BITS).fit(z).transform(z))
    index = HammingIndex(FEATURE_BITS, features=z.shape[1])
    index.add(among, codes[among], features=z[among])
    answers = index.search(codes[asked], NEAREST + 1, rerank=ByFeatures(z[asked], SHORTLIST))
    assert answers.scores is not None
    for row, names, scores in zip(asked.tolist(), answers.ids.tolist(), answers.scores.tolist(), strict=True):
        yield from ((row, other) for other, squared in zip(names, scores, strict=True) if squared / 2 <= FARTHEST)
