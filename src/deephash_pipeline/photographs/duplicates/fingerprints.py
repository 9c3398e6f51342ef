"""Fingerprints of pictures: features of a network, and a small picture in grey."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.progress import count_steps
from deephash_pipeline.hashing.srh import unit_length_rows
from deephash_pipeline.images.batches import ImageBatch, SkippedImage, image_batches
from deephash_pipeline.photographs.duplicates.frequencies import resized
from deephash_pipeline.photographs.duplicates.groups import Photo
from deephash_pipeline.photographs.duplicates.kept import Kept
from deephash_pipeline.photographs.duplicates.known import has_features_of, known_features, made_by
from deephash_pipeline.photographs.duplicates.left_over import GREY
from deephash_pipeline.photographs.duplicates.small_picture import LONGER_SIDE, scaled
from deephash_pipeline.photographs.index import ImageIndex

if TYPE_CHECKING:
    from deephash_pipeline.deephash import FeatureExtractor

FINGERPRINTED_AT_A_TIME = 64


class Fingerprints(NamedTuple):
    """What is kept of pictures.

    Attributes:
        rows: numbers of the files that they are, int64 (n,).
        features: features of unit length, float16 (n, dimension).
        greys: uint8 (height, width) each, the longer side of 64 pixels.
        skipped: files that cannot be decoded.
    """

    rows: NDArray[np.int64]
    features: NDArray[np.float16]
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
    found: dict[int, tuple[NDArray[np.float16], NDArray[np.uint8]]] = {}
    skipped: list[SkippedImage] = []
    prints, network = (Kept() if kept is None else kept).prints, lru_cache(1)(extractor)
    with count_steps("pictures", total=len(photos)) as advance:
        known = None if index is None or len(photos) < 2 else _known(photos, index, extractor, network, kept)
        for row, photo in enumerate(photos):
            if known is not None and photo.path in known and photo.key in prints:
                found[row] = known[photo.path], prints[photo.key]
                advance(f"{len(found)} of {len(photos)}")
        to_read = [] if len(photos) < 2 else [row for row in range(len(photos)) if row not in found]
        for batch in _batches([photos[row].path for row in to_read], None if known is None else index, network):
            rows = [to_read[place] for place in batch.rows]
            skipped += [
                broken._replace(row=to_read[broken.row], name=photos[to_read[broken.row]].name)
                for broken in batch.skipped
            ]
            stored = [None if known is None else known.get(photos[row].path) for row in rows]
            unknown = [z is None for z in stored]
            # Of a broken picture there is nothing to compute.
            computed = iter(unit_length_rows(network()(batch.pixels[unknown])) if any(unknown) else ())
            features = [next(computed).astype(np.float16) if z is None else z for z in stored]
            greys = _small(batch.pixels, [photos[row] for row in rows])
            found |= dict(zip(rows, zip(features, greys, strict=True), strict=True))
            prints |= {photos[row].key: found[row][1] for row in rows}
            if known is not None and kept is not None and kept.network:
                kept.features |= {
                    photos[row].key: found[row][0] for row, z in zip(rows, stored, strict=True) if z is None
                }
            for _ in (*batch.rows, *batch.skipped):
                advance(f"{len(found) + len(skipped)} of {len(photos)}")
    order = sorted(found)
    joined = np.stack([found[row][0] for row in order]) if order else np.empty((0, 1), np.float16)
    return Fingerprints(np.array(order, dtype=np.int64), joined, [found[row][1] for row in order], skipped)


def _known(
    photos: Sequence[Photo],
    index: ImageIndex,
    extractor: Callable[[], "FeatureExtractor"],
    network: Callable[[], "FeatureExtractor"],
    kept: Kept | None,
) -> dict[Path, NDArray[np.float16]] | None:
    """Features of pictures, of an index or kept beside it; None if it has those of another network, compared once."""
    name = made_by(index, extractor)
    if kept is None or not name or kept.network != name:
        if not has_features_of(index, network()):
            return None
        if kept is not None:
            kept.network, kept.features = name, {}
    known = known_features(index, {photo.path for photo in photos})
    if kept is not None:
        in_index = {photo.key for photo in photos if photo.path in known}
        kept.features = {key: z for key, z in kept.features.items() if key not in in_index}
        known |= {photo.path: kept.features[photo.key] for photo in photos if photo.key in kept.features}
    return known


def _batches(
    paths: Sequence[Path], index: ImageIndex | None, network: Callable[[], "FeatureExtractor"]
) -> Iterator[ImageBatch]:
    """Pixels of pictures as the network takes them, which is not loaded if the hasher of an index says how."""
    if paths:
        shape = network().image_shape if index is None else index.image_shape
        yield from image_batches(paths, (1 if shape[0] == 1 else 3, *shape[1:]), FINGERPRINTED_AT_A_TIME, "skip")


def _small(pixels: NDArray[np.uint8], photos: Sequence[Photo]) -> list[NDArray[np.uint8]]:
    """Small grey pictures of some pixels, in the frames of their pictures."""
    weights = GREY if pixels.shape[1] == len(GREY) else np.ones(1, np.float32)
    sizes = [scaled((photo.width, photo.height), LONGER_SIDE / max(photo.width, photo.height)) for photo in photos]
    greys = np.einsum("nchw,c->nhw", pixels, weights)
    return [np.rint(resized(grey, size)).astype(np.uint8) for grey, size in zip(greys, sizes, strict=True)]
