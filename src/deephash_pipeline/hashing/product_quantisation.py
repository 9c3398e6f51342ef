"""Product quantisation by faiss: as many bits as a code, but centroids and no signs. Not binary: a reference."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.extras import required

MOST_BITS = 8
"""Bits of a sub-space, whose centroids are 2 to the power of them: 256, the field's usual number."""


def quantise_products(
    training_z: NDArray[Any], others: list[NDArray[Any]], code_length: int, random_state: int = 0
) -> list[NDArray[np.float32]]:
    """Replace features by what product quantisation (Jegou, Douze & Schmid, PAMI 2011) keeps of them.

    The features are cut into sub-spaces, of which k-means finds the centroids; a code is the numbers of the nearest
    ones. Its bits are no signs, Hamming distances of such codes say nothing: a query stays as it is and is compared
    with the centroids (asymmetric distance). Sub-spaces have `MOST_BITS` bits if these divide the code length and there
    are as many training rows as centroids, else the next fewer bits for which both is so.

    Args:
        training_z: features that the centroids are learned from, shape (n, D).
        others: features to be replaced, shape (m, D) each.
        code_length: bits of all sub-spaces together.
        random_state: seed of k-means.

    Returns:
        For each of the others the centroids that its codes name, float32 of the same shape.

    Raises:
        InputError: faiss is not installed, or there are fewer than two training rows.

    As in ``[kept] = quantise_products(z, [z], code_length=32)``.
    """
    if len(training_z) < 2:
        raise InputError(f"product quantisation needs two training rows at least, got {len(training_z)}: give more")
    faiss = required("faiss", "faiss")
    bits = max(bits for bits in range(1, MOST_BITS + 1) if code_length % bits == 0 and 2**bits <= len(training_z))
    parts, features = code_length // bits, training_z.shape[1]

    def padded(z: NDArray[Any]) -> NDArray[np.float32]:
        # Sub-spaces are equally large; zeros add nothing to a distance.
        return np.pad(np.asarray(z, dtype=np.float32), ((0, 0), (0, -features % parts)))

    quantiser = faiss.ProductQuantizer(features + -features % parts, parts, bits)
    quantiser.cp.seed = random_state % 2**31
    # It would print a warning where there are fewer.
    quantiser.cp.min_points_per_centroid = 1
    quantiser.train(padded(training_z))
    return [quantiser.decode(quantiser.compute_codes(padded(z)))[:, :features] for z in others]
