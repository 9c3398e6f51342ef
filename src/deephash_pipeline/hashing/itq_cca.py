"""ITQ-CCA: directions correlated with the labels, rotated to lie close to the corners of a cube."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.linalg import cholesky, solve_triangular

from deephash_pipeline.hashing.anchors import class_columns
from deephash_pipeline.hashing.itq import ITQ
from deephash_pipeline.hashing.principal_directions import COVARIANCE_ROWS, with_signs_fixed
from deephash_pipeline.hashing.rows import Floats, Ints, require_different_rows, row_blocks


class ITQCCA(ITQ):
    """Iterative quantisation on canonical correlations (Gong & Lazebnik, CVPR 2011, section 3.4).

    ITQ with labels: principal components give way to the directions w_k whose projections correlate most with the
    one-hot labels, (S_xy S_yy^-1 S_yx) w_k = rho_k^2 S_xx w_k, each scaled by its correlation rho_k. At most C - 1
    correlations of C classes differ from zero. The other columns, up to the code length, are zero and stay: the
    rotation spreads what the first ones say over all bits.

    Args:
        code_length: number of bits per code, 1 to 4,096.
        iterations: number of alternations between codes and rotation; the authors' choice is 50.
        ridge: share of the number of rows that is added to the diagonals of S_xx and S_yy; the authors' choice is 1e-4.
        random_state: seed of the first rotation.

    Attributes:
        objective_: objective after each iteration, as that of `ITQ`.

    Example:
        >>> import numpy as np
        >>> labels = np.arange(90) % 3
        >>> z = np.random.default_rng(0).normal(size=(90, 5)) + 6 * np.eye(3, 5)[labels]
        >>> codes = ITQCCA(code_length=8).fit(z, labels).transform(z)
        >>> bool((codes[0] == codes[3]).mean() > (codes[0] == codes[1]).mean())
        True
    """

    display_name = "ITQ-CCA"
    supervised = True
    several_labels = True
    ridge: Annotated[float, Field(gt=0, le=1)] = 1e-4

    def _learn_directions(self, z: NDArray[Any], centre: Floats, labels: Ints) -> Floats:
        """The directions times their correlations, shape (D, K), zero beyond the last correlation."""
        require_different_rows(z, "correlation with classes")
        classes = class_columns(labels)
        features, count = z.shape[1], classes.shape[1]
        centred_classes = classes - classes.mean(axis=0)
        added = self.ridge * len(z)
        of_features: Floats = added * np.eye(features)
        crossed = np.zeros((features, count))
        for rows in row_blocks(z, at_least=COVARIANCE_ROWS):
            centred = z[rows] - centre
            of_features += centred.T @ centred
            crossed += centred.T @ centred_classes[rows]
        # With S = L L' on both sides, the correlations are singular values of Lx^-1 S_xy Ly^-T.
        lower = cholesky(of_features, lower=True)
        lower_classes = cholesky(centred_classes.T @ centred_classes + added * np.eye(count), lower=True)
        whitened = solve_triangular(lower, crossed, lower=True)
        whitened = solve_triangular(lower_classes, whitened.T, lower=True).T
        left, correlations, _ = np.linalg.svd(whitened, full_matrices=False)
        directions = with_signs_fixed(solve_triangular(lower, left * correlations, lower=True, trans="T"))
        padded = np.zeros((features, self.code_length))
        found = min(self.code_length, directions.shape[1])
        padded[:, :found] = directions[:, :found] * np.sqrt(len(z))
        return padded
