"""Fingerprints of pictures: features of a network, pHash, and a small picture in grey."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.progress import count_steps
from deephash_pipeline.deephash import FeatureExtractor
from deephash_pipeline.hashing.srh import unit_length_rows
from deephash_pipeline.images.batches import ImageShape, SkippedImage, image_batches
from deephash_pipeline.photographs.duplicates import perceptual_hash
from deephash_pipeline.photographs.duplicates.groups import Photo
from deephash_pipeline.photographs.duplicates.kept import Print
from deephash_pipeline.photographs.duplicates.known import known_features
from deephash_pipeline.photographs.duplicates.left_over import GREY
from deephash_pipeline.photographs.duplicates.perceptual_hash import ORIENTATIONS
from deephash_pipeline.photographs.duplicates.registration import LONGER_SIDE, resized, scaled
from deephash_pipeline.photographs.index import ImageIndex

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
    extractor: Callable[[], FeatureExtractor],
    index: ImageIndex | None = None,
    kept: Sequence[Print | None] = (),
) -> Fingerprints:
    """Read pictures once, each for all that they are compared by; a single one is compared with nothing.

    Args:
        photos: the pictures.
        extractor: function that gives the network.
        index: index whose features of unchanged files are taken.
        kept: what is known of each picture, None for nothing; one of which the features are known too is not read.
    """
    found: dict[int, tuple[NDArray[np.float16], NDArray[np.uint8], NDArray[np.uint8]]] = {}
    skipped: list[SkippedImage] = []
    with count_steps("pictures", total=len(photos)) as advance:
        network = extractor() if len(photos) > 1 else None
        known = known_features(index, network, {photo.path for photo in photos}) if index and network else {}
        for row, of_file in enumerate(kept):
            if of_file is not None and photos[row].path in known:
                found[row] = known[photos[row].path], *of_file
                advance(f"{len(found)} of {len(photos)}")
        to_read = [] if network is None else [row for row in range(len(photos)) if row not in found]
        shape: ImageShape = (1,) if network is None else network.image_shape
        paths = [photos[row].path for row in to_read]
        for batch in image_batches(paths, shape, FINGERPRINTED_AT_A_TIME, "skip"):
            assert network is not None
            rows = [to_read[place] for place in batch.rows]
            skipped += [
                broken._replace(row=to_read[broken.row], name=photos[to_read[broken.row]].name)
                for broken in batch.skipped
            ]
            stored = [known.get(photos[row].path) for row in rows]
            computed = iter(unit_length_rows(network(batch.pixels[[z is None for z in stored]])).astype(np.float16))
            features = [next(computed) if z is None else z for z in stored]
            found |= dict(zip(rows, _of_pixels(batch.pixels, [photos[row] for row in rows], features), strict=True))
            for _ in (*batch.rows, *batch.skipped):
                advance(f"{len(found) + len(skipped)} of {len(photos)}")
    order = sorted(found)
    joined = np.stack([found[row][0] for row in order]) if order else np.empty((0, 1), np.float16)
    packed = np.array([found[row][1] for row in order], dtype=np.uint8).reshape(
        len(order), ORIENTATIONS, perceptual_hash.FREQUENCY_BITS // 8
    )
    return Fingerprints(np.array(order, dtype=np.int64), joined, packed, [found[row][2] for row in order], skipped)


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
