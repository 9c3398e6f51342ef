"""Pictures that may be copies of one: alike in low frequencies in one of eight orientations, or nearest by features."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming import ByFeatures, HammingIndex
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.hashing.srh import unit_length_rows
from deephash_pipeline.photographs.duplicates.fingerprints import Fingerprints
from deephash_pipeline.photographs.duplicates.frequencies import (
    FREQUENCY_BITS,
    ORIENTATIONS,
    frequencies_in,
    likeness_vectors,
    low_frequencies,
    perceptual_hashes,
)
from deephash_pipeline.retrieval import pack_bits

HASH_RADIUS, LEAST_LIKENESS, MOST_BY_FREQUENCIES = 18, 0.9, 10
"""Bits of pHash in which candidates differ, likeness of their low frequencies, and how many a picture has at most."""
FEATURE_BITS, NEAREST_BY_BITS, NEIGHBOURS = 512, 256, 16
"""Of a picture's neighbours by features: bits of LSH, how many by them, how many by cosine."""
FLAT = 2.0
"""Standard deviation of the greys, of 255, up to which a picture is like any other of one colour."""
PAIRS_KEPT = 2**20
"""Of pictures that are alike, such as blank pages, there are too many pairs to keep all."""


def candidates(prints: Fingerprints, asked: NDArray[np.bool_], among: NDArray[np.bool_]) -> list[tuple[int, list[int]]]:
    """Pictures that are asked for, and those to look among that may be copies of each; no flat ones.

    They are first those alike in low frequencies, each by itself, and then the nearest by features, of which most fail.
    """
    detailed = np.array([grey.std() > FLAT for grey in prints.greys], dtype=np.bool_)
    asked_rows, among_rows = np.flatnonzero(asked & detailed), np.flatnonzero(among & detailed)
    if not (len(asked_rows) and len(among_rows)):
        return []
    return [
        *((one, [other]) for one, other in _near_by_frequencies(prints.greys, asked_rows, among_rows)),
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
    return unit_length_rows(centred @ (directions / np.sqrt(np.maximum(variances, 0) + ridge)))


def _near_by_frequencies(
    greys: Sequence[NDArray[np.uint8]], asked: NDArray[np.int64], among: NDArray[np.int64]
) -> Iterator[tuple[int, int]]:
    """Pairs whose low frequencies are alike in one of the orientations, for each picture the nearest of them."""
    low = low_frequencies(greys)
    plain, here = HammingIndex(FREQUENCY_BITS), likeness_vectors(low)
    plain.add(asked, perceptual_hashes(low[asked]))
    near, pending = np.empty((0, 3)), []
    for orientation in range(ORIENTATIONS):
        in_orientation = frequencies_in(low, orientation)
        turned, there = HammingIndex(FREQUENCY_BITS), likeness_vectors(in_orientation)
        turned.add(among, perceptual_hashes(in_orientation[among]))
        for block in plain.pairs(HASH_RADIUS, turned):
            likeness = np.einsum("nf,nf->n", here[block.first], there[block.second])
            alike = (likeness >= LEAST_LIKENESS) & (block.first != block.second)
            pending.append(np.stack([1 - likeness, block.first, block.second], axis=1)[alike])
            if sum(map(len, pending)) > PAIRS_KEPT:
                near, pending = _nearest(near, *pending), []
    near = _nearest(near, *pending)
    for _, one, other in near[np.argsort(near[:, 0], kind="stable")].tolist():
        yield int(one), int(other)


def _nearest(*found: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of rows of distance, picture and other, those of each picture that are nearest, the first of equal ones."""
    pairs = np.concatenate(found)
    pairs = pairs[np.lexsort((pairs[:, 0], pairs[:, 1]))]
    _, first, counts = np.unique(pairs[:, 1], return_index=True, return_counts=True)
    return pairs[np.arange(len(pairs)) - np.repeat(first, counts) < MOST_BY_FREQUENCIES]


def _near_by_features(
    features: NDArray[np.float16], asked: NDArray[np.int64], among: NDArray[np.int64]
) -> Iterator[tuple[int, list[int]]]:
    """Each picture and the nearest to it by features."""
    z = whitened(features.astype(np.float32))
    codes = pack_bits(HASH_FUNCTIONS["lsh_centred"](FEATURE_BITS).fit(z).transform(z))
    index = HammingIndex(FEATURE_BITS, features=z.shape[1])
    index.add(among, codes[among], features=z[among])
    answers = index.search(codes[asked], NEIGHBOURS + 1, rerank=ByFeatures(z[asked], NEAREST_BY_BITS))
    for row, names in zip(asked.tolist(), answers.ids.tolist(), strict=True):
        yield row, [other for other in names if other != row]
