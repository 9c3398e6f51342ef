"""PCAH: the signs of the principal components."""

from typing import Any

from numpy.typing import NDArray

from deephash_pipeline.hashing.linear import LinearHashFunction, feature_mean, hyperplanes_through
from deephash_pipeline.hashing.principal_directions import one_direction_per_bit
from deephash_pipeline.hashing.rows import Ints


class PCAH(LinearHashFunction):
    """Hashing by principal component analysis (the "PCA-Direct" of Gong & Lazebnik, CVPR 2011).

    Bit k is the sign of the k-th principal component of the centred features. The components are uncorrelated, so each
    bit says something new, and the first ones carry most of the variance. Every bit counts the same in the Hamming
    distance, however small its variance: long codes end in bits that are mostly noise, and mAP falls as the code grows.
    Needs one direction of variance per bit, thus code_length <= min(D, n - 1). Draws nothing at random.

    Example:
        >>> PCAH(code_length=1).fit([[0, 0], [1, 1], [2, 2], [3, 3]]).transform([[1, 1], [2, 2]]).tolist()
        [[False], [True]]
    """

    display_name = "PCAH"
    reference = (
        "Gong & Lazebnik, Iterative quantization: a procrustean approach to learning binary codes, CVPR 2011, "
        "doi:10.1109/CVPR.2011.5995432"
    )

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        centre = feature_mean(z)
        return hyperplanes_through(centre, one_direction_per_bit(z, centre, self.code_length))
