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
from deephash_pipeline.photographs.duplicates.known import known_features
from deephash_pipeline.photographs.duplicates.registration import LONGER_SIDE, resized, scaled
from deephash_pipeline.photographs.index import ImageIndex

DECODED_AT_A_TIME = 64
GREY = np.array([0.299, 0.587, 0.114], dtype=np.float32)


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
            computed = iter(unit_length_rows(network(batch.pixels[[z is None for z in stored]])).astype(np.float16))
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
