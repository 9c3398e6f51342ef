"""ITQ: principal components, rotated to lie close to the corners of a cube."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveInt

from deephash_pipeline.hashing.encoder import learned
from deephash_pipeline.hashing.linear import LinearHashFunction, feature_mean, hyperplanes_through, project
from deephash_pipeline.hashing.principal_directions import one_direction_per_bit
from deephash_pipeline.hashing.rows import Floats, Ints, row_blocks


class ITQ(LinearHashFunction):
    """Iterative quantisation on principal components (Gong & Lazebnik, CVPR 2011; Gong et al., PAMI 2013).

    Principal components V (n, K) preserve the data, but their signs waste it: the first components carry most of the
    variance. Every rotation R preserves as much, so ITQ looks for the one whose signs B = sgn(V R) lose least: minimise
    ||B - V R||_F^2. It alternates two exact steps, the best B for R (the signs) and the best R for B (orthogonal
    Procrustes, one SVD of a K x K matrix), from a random rotation. Rotated components share the variance evenly, so
    every bit earns its place in the Hamming distance.

    Args:
        code_length: number of bits per code, 1 to min(D, n - 1).
        iterations: number of alternations between codes and rotation; the authors' choice is 50.
        random_state: seed of the first rotation.

    Attributes:
        objective_: float64, shape (iterations + 1,): ||B - V R||_F^2 at the random rotation and after each iteration;
            never rises.

    Example:
        >>> import numpy as np
        >>> z = np.random.default_rng(0).normal(size=(100, 8))
        >>> itq = ITQ(code_length=4, iterations=20).fit(z)
        >>> bool(itq.objective_[-1] < itq.objective_[0])
        True
    """

    display_name = "ITQ"
    reference = (
        "Gong & Lazebnik, Iterative quantization: a procrustean approach to learning binary codes, CVPR 2011, "
        "doi:10.1109/CVPR.2011.5995432"
    )
    objective_: NDArray[np.float64] = learned("rotations")
    iterations: PositiveInt = 50

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        centre = feature_mean(z)
        directions = self._learn_directions(z, centre, labels)
        rotation, objective = self._learn_rotation(project(z, directions) - centre @ directions)
        return {**hyperplanes_through(centre, directions @ rotation), "objective": objective}

    def _learn_directions(self, z: NDArray[Any], centre: Floats, labels: Ints) -> Floats:
        """What is rotated, shape (D, m)."""
        return one_direction_per_bit(z, centre, self.code_length)

    def _learn_rotation(self, components: Floats) -> tuple[Floats, Floats]:
        """The rotation (m, K) and the objective's course (iterations + 1,), from V, the principal components (n, m).

        Of m > K components R has K orthonormal columns, and the objective is that of all m with zeros for m - K bits.
        """
        rotation = random_rotation(components.shape[1], self.random_state)[:, : self.code_length]
        correlation = _correlate_with_signs(components, rotation)
        # ||B - V R||^2 = ||B||^2 + ||V||^2 - 2 tr(R' V' B): the last term alone changes, and needs m x K matrices only.
        constant = len(components) * self.code_length + np.vdot(components, components)
        objective = [constant - 2 * np.vdot(rotation, correlation)]
        for _ in range(self.iterations):
            # Procrustes: with V' B = L S P', tr(R' V' B) is largest at R = L P'.
            left, _, right_transposed = np.linalg.svd(correlation, full_matrices=False)
            rotation = left @ right_transposed
            correlation = _correlate_with_signs(components, rotation)
            objective.append(constant - 2 * np.vdot(rotation, correlation))
        return rotation, np.array(objective)


def random_rotation(size: int, random_state: int) -> Floats:
    """Draw a rotation, float64, shape (size, size).

    Example:
        >>> rotation = random_rotation(3, random_state=0)
        >>> np.allclose(rotation @ rotation.T, np.eye(3))
        True
    """
    return np.linalg.svd(np.random.default_rng(random_state).standard_normal((size, size)))[0]


def _correlate_with_signs(components: Floats, rotation: Floats) -> Floats:
    """V' B with B = sgn(V R), shape (m, K), for V of shape (n, m); B exists one block of rows at a time."""
    correlation = np.zeros_like(rotation)
    for rows in row_blocks(components):
        signs = np.where(components[rows] @ rotation >= 0, 1.0, -1.0)
        correlation += components[rows].T @ signs
    return correlation
