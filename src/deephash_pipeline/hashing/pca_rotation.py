"""PCA-RR: principal components, rotated at random."""

from typing import Any

from numpy.typing import NDArray

from deephash_pipeline.hashing.itq import random_rotation
from deephash_pipeline.hashing.linear import LinearHashFunction, feature_mean, hyperplanes_through
from deephash_pipeline.hashing.principal_directions import one_direction_per_bit
from deephash_pipeline.hashing.rows import Ints


class PCARotation(LinearHashFunction):
    """Signs of principal components after a random rotation, which spreads their variance evenly over the bits.

    It is where ITQ starts, "PCA-RR" in its authors' tables: nearly as good in long codes, and learned in one step.

    Args:
        code_length: number of bits per code, 1 to min(D, n - 1).
        random_state: seed of the rotation.

    Example:
        >>> PCARotation(code_length=1).fit([[0, 0], [1, 1], [2, 2], [3, 3]]).transform([[1, 1], [2, 2]]).tolist()
        [[False], [True]]
    """

    display_name = "PCA-RR"
    reference = (
        "Jegou, Douze, Schmid & Perez, Aggregating local descriptors into a compact representation, CVPR 2010, "
        "doi:10.1109/CVPR.2010.5540039"
    )

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        centre = feature_mean(z)
        directions = one_direction_per_bit(z, centre, self.code_length)
        return hyperplanes_through(centre, directions @ random_rotation(self.code_length, self.random_state))
