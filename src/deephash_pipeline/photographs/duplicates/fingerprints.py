"""Fingerprints of pictures: features of a network, pHash, and a small picture in grey."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.progress import count_steps
from deephash_pipeline.hashing.srh import unit_length_rows
from deephash_pipeline.images.batches import ImageBatch, SkippedImage, image_batches
from deephash_pipeline.photographs.duplicates import perceptual_hash
from deephash_pipeline.photographs.duplicates.groups import Photo
from deephash_pipeline.photographs.duplicates.kept import Kept
from deephash_pipeline.photographs.duplicates.known import has_features_of, known_features, made_by
from deephash_pipeline.photographs.duplicates.left_over import GREY
from deephash_pipeline.photographs.duplicates.perceptual_hash import ORIENTATIONS
from deephash_pipeline.photographs.duplicates.registration import LONGER_SIDE, resized, scaled
from deephash_pipeline.photographs.index import ImageIndex

if TYPE_CHECKING:
    from deephash_pipeline.deephash import FeatureExtractor

FINGERPRINTED_AT_A_TIME = 64


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


def fingerprints(
    photos: Sequence[Photo],
    extractor: Callable[[], "FeatureExtractor"],
    index: ImageIndex | None = None,
    kept: Kept | None = None,
) -> Fingerprints:
    """Read pictures once, each for all that they are compared by; a single one is compared with nothing.

    Args:
        photos: the pictures.
        extractor: function that gives the network, if there is a picture to compute.
        index: index whose features of unchanged files are taken.
        kept: what earlier looks have found; a picture of which that and the features are known is not read. What is
            found is added.
    """
    found: dict[int, tuple[NDArray[np.float16], NDArray[np.uint8], NDArray[np.uint8]]] = {}
    skipped: list[SkippedImage] = []
    prints, network = (Kept() if kept is None else kept).prints, lru_cache(1)(extractor)
    with count_steps("pictures", total=len(photos)) as advance:
        known = None if index is None or len(photos) < 2 else _known(photos, index, extractor, network, kept)
        for row, photo in enumerate(photos):
            if known and photo.path in known and photo.key in prints:
                found[row] = known[photo.path], *prints[photo.key]
                advance(f"{len(found)} of {len(photos)}")
        to_read = [] if len(photos) < 2 else [row for row in range(len(photos)) if row not in found]
        for batch in _batches([photos[row].path for row in to_read], index if known else None, network):
            rows = [to_read[place] for place in batch.rows]
            skipped += [
                broken._replace(row=to_read[broken.row], name=photos[to_read[broken.row]].name)
                for broken in batch.skipped
            ]
            stored = [known.get(photos[row].path) if known else None for row in rows]
            unknown = [z is None for z in stored]
            # Of a broken picture there is nothing to compute.
            computed = iter(unit_length_rows(network()(batch.pixels[unknown])) if any(unknown) else ())
            features = [next(computed).astype(np.float16) if z is None else z for z in stored]
            found |= dict(zip(rows, _of_pixels(batch.pixels, [photos[row] for row in rows], features), strict=True))
            prints |= {photos[row].key: found[row][1:] for row in rows}
            for _ in (*batch.rows, *batch.skipped):
                advance(f"{len(found) + len(skipped)} of {len(photos)}")
    order = sorted(found)
    joined = np.stack([found[row][0] for row in order]) if order else np.empty((0, 1), np.float16)
    packed = np.array([found[row][1] for row in order], dtype=np.uint8).reshape(
        len(order), ORIENTATIONS, perceptual_hash.FREQUENCY_BITS // 8
    )
    return Fingerprints(np.array(order, dtype=np.int64), joined, packed, [found[row][2] for row in order], skipped)


def _known(
    photos: Sequence[Photo],
    index: ImageIndex,
    extractor: Callable[[], "FeatureExtractor"],
    network: Callable[[], "FeatureExtractor"],
    kept: Kept | None,
) -> dict[Path, NDArray[np.float16]]:
    """Features that an index has of pictures; that they are of this network is compared once."""
    name = made_by(index, extractor)
    if kept is None or not name or kept.network != name:
        if not has_features_of(index, network()):
            return {}
        if kept is not None and name:
            kept.network = name
    return known_features(index, {photo.path for photo in photos})


def _batches(
    paths: Sequence[Path], index: ImageIndex | None, network: Callable[[], "FeatureExtractor"]
) -> Iterator[ImageBatch]:
    """Pixels of pictures as the network takes them, which is not loaded if the hasher of an index says how."""
    if paths:
        shape = network().image_shape if index is None else index.image_shape
        yield from image_batches(paths, (1 if shape[0] == 1 else 3, *shape[1:]), FINGERPRINTED_AT_A_TIME, "skip")


def _of_pixels(
    pixels: NDArray[np.uint8], photos: Sequence[Photo], features: Sequence[NDArray[np.float16]]
) -> list[tuple[NDArray[np.float16], NDArray[np.uint8], NDArray[np.uint8]]]:
    """Features, pHash and the small picture of each of some pictures."""
    weights = GREY if pixels.shape[1] == len(GREY) else np.ones(1, np.float32)
    grey = np.einsum("nchw,c->nhw", pixels, weights)
    side = perceptual_hash.SIDE
    squares = np.array([resized(one, (side, side)) for one in grey], dtype=np.float32).reshape(-1, side, side)
    sizes = [scaled((photo.width, photo.height), LONGER_SIDE / max(photo.width, photo.height)) for photo in photos]
    small = [np.rint(resized(one, size)).astype(np.uint8) for one, size in zip(grey, sizes, strict=True)]
    return list(zip(features, perceptual_hash.perceptual_hashes(squares), small, strict=True))
