"""LSH: random hyperplanes, through zero or through the mean of the training set."""

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hashing.linear import LinearHashFunction, feature_mean, hyperplanes_through
from deephash_pipeline.hashing.rows import Floats, Ints


class LSH(LinearHashFunction):
    """Locality-sensitive hashing for the angle between vectors (Charikar, STOC 2002).

    Each bit says on which side of a random hyperplane through the origin a vector lies; the normals are Gaussian,
    hence uniform in direction. Two vectors at an angle t share a bit with probability 1 - t / pi, so the Hamming
    distance estimates the angle, the better the longer the code. Nothing is learned from data.

    Args:
        code_length: number of bits per code, 1 to 4,096.
        centre: put the hyperplanes through the training set's mean instead of the origin. Features after a ReLU lie in
            one orthant, at small angles to each other; this balances the bits, but is no part of the definition.
        random_state: seed of the hyperplanes.

    Example:
        >>> LSH(code_length=4).fit([[0.0, 1.0], [1.0, 0.0]]).transform([[2.0, 1.0], [-2.0, -1.0]]).astype(int)
        array([[1, 1, 0, 1],
               [0, 0, 1, 0]])
    """

    display_name = "LSH"
    reference = (
        "Charikar, Similarity estimation techniques from rounding algorithms, STOC 2002, doi:10.1145/509907.509965"
    )
    centre: bool = False

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        centre = feature_mean(z) if self.centre else np.zeros(z.shape[1])
        return hyperplanes_through(centre, self._draw_directions(z.shape[1]))

    def _draw_directions(self, features: int) -> Floats:
        # One row per bit, so that a shorter code of the same seed is a prefix of a longer one.
        return np.random.default_rng(self.random_state).standard_normal((self.code_length, features)).T


class CentredLSH(LSH):
    """LSH whose hyperplanes pass through the training set's mean, as in HABIR and most toolboxes.

    Features after a ReLU lie in one orthant, at small angles to each other; seen from their mean they spread, and bits
    are balanced. That is no part of Charikar's definition, nor of `LSH`, which is uncentred.

    Args:
        code_length: number of bits per code, 1 to 4,096.
        random_state: seed of the hyperplanes.

    Example:
        >>> CentredLSH(code_length=4).fit([[0.0, 1.0], [1.0, 0.0]]).transform([[2.0, 1.0], [-2.0, -1.0]]).astype(int)
        array([[1, 1, 0, 1],
               [0, 0, 1, 0]])
    """

    display_name = "LSH (centred)"
    centre: bool = field(init=False, default=True)
