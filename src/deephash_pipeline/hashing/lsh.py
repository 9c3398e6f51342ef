"""LSH: random hyperplanes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hashing.base import HashParameters
from deephash_pipeline.hashing.linear import LinearHashFunction, feature_mean, hyperplanes_through


class LSHParameters(HashParameters):
    """Parameters of `LSH`.

    Attributes:
        centre: put the hyperplanes through the training set's mean instead of the origin.
    """

    centre: bool = False


class LSH(LinearHashFunction):
    """Locality-sensitive hashing for the angle between vectors (Charikar, STOC 2002).

    Each bit tells on which side of a random hyperplane through the origin a vector lies; the normals are Gaussian,
    hence uniform in direction. Two vectors at an angle t share a bit with probability 1 - t / pi, so the Hamming
    distance estimates the angle, the better the longer the code. Nothing is learned from data. Features behind a ReLU
    lie in one orthant, at small angles to each other: `centre` moves the hyperplanes to the mean, which balances the
    bits but is no part of the definition, hence off by default.
    """

    display_name = "LSH"
    parameters_model = LSHParameters
    parameters: LSHParameters

    def _learn(self, z: NDArray[Any], labels: NDArray[np.int64] | None) -> dict[str, NDArray[Any]]:
        centre = feature_mean(z) if self.parameters.centre else np.zeros(z.shape[1])
        return hyperplanes_through(centre, self._draw_directions(z.shape[1]))

    def _draw_directions(self, features: int) -> NDArray[np.float64]:
        # One row per bit, so that a shorter code of the same seed is a prefix of a longer one.
        return np.random.default_rng(self.seed).standard_normal((self.code_length, features)).T
