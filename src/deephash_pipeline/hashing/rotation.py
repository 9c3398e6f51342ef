"""A random rotation: hyperplanes at right angles."""

import numpy as np

from deephash_pipeline.hashing.lsh import CentredLSH
from deephash_pipeline.hashing.rows import Floats


class RandomRotation(CentredLSH):
    """Super-bit LSH: random hyperplanes through the mean, orthogonal to each other in groups of D.

    Every bit still follows Charikar's law of the angle, but bits of one group repeat each other less than independent
    ones, so the Hamming distance estimates the angle better. Up to D bits are signs after one rotation; longer codes
    have further rotations.

    Args:
        code_length: number of bits per code, of any number of features.
        random_state: seed of the rotations.

    Example:
        >>> rotation = RandomRotation(code_length=3).fit([[0.0, 1.0], [1.0, 0.0]])
        >>> np.allclose(rotation.projection_[:, :2].T @ rotation.projection_[:, :2], np.eye(2), atol=1e-6)
        True
    """

    display_name = "Random rotation"
    reference = "Ji, Li, Yan, Zhang & Tian, Super-bit locality-sensitive hashing, NIPS 2012"

    def _draw_directions(self, features: int) -> Floats:
        # Gram-Schmidt leaves the first directions as they are, so a shorter code is a prefix of a longer one.
        drawn = super()._draw_directions(features)
        starts = range(0, self.code_length, features)
        return np.concatenate([np.linalg.qr(drawn[:, start : start + features])[0] for start in starts], axis=1)
