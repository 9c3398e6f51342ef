"""PCAH: the signs of the principal components."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hashing.base import HashParameters
from deephash_pipeline.hashing.linear import LinearHashFunction, feature_mean, hyperplanes_through
from deephash_pipeline.hashing.principal_directions import one_direction_per_bit


class PCAHParameters(HashParameters):
    """PCAH has no parameters; the model refuses any."""


class PCAH(LinearHashFunction):
    """Hashing by principal component analysis (the "PCA-Direct" of Gong & Lazebnik, CVPR 2011).

    Bit k is the sign of the k-th principal component of the centred features. The components are uncorrelated, so each
    bit says something new, and the first ones carry most of the variance. Every bit counts the same in the Hamming
    distance, however small the variance behind it: long codes end in bits that are mostly noise, and mAP falls as the
    code grows. Needs one direction of variance per bit, thus code_length <= min(D, n - 1).
    """

    display_name = "PCAH"
    parameters_model = PCAHParameters
    parameters: PCAHParameters

    def _learn(self, z: NDArray[Any], labels: NDArray[np.int64] | None) -> dict[str, NDArray[Any]]:
        centre = feature_mean(z)
        return hyperplanes_through(centre, one_direction_per_bit(z, centre, self.code_length))
