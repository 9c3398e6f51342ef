"""Principal component analysis as PCAH, ITQ and spectral hashing need it: few directions, repeatable to the sign."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing.rows import Floats, require_different_rows, row_blocks

# With fewer rows per update, passes over the D x D matrix (0.7 GB at D = 9,216) would cost more than the products.
COVARIANCE_ROWS = 2048


def principal_directions(z: NDArray[Any], centre: Floats, at_most: int) -> Floats:
    """Orthonormal directions of largest variance, the largest first.

    Directions along which `z` varies by no more than rounding are left out: a bit read off such a direction is noise.
    The largest component of each direction is positive.

    Args:
        z: features, shape (n, D).
        centre: mean of the rows, shape (D,).
        at_most: the number of directions wanted.

    Returns:
        Directions, float64, shape (D, m), m = min(at_most, rank of the centred features).

    Raises:
        InputError: all rows of `z` are equal.

    Example:
        >>> import numpy as np
        >>> z = np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]])
        >>> principal_directions(z, z.mean(axis=0), at_most=2)
        array([[1.],
               [0.]])
    """
    require_different_rows(z, "direction of variance")
    covariance = scatter(z, centre)
    covariance /= z.shape[0]
    features = covariance.shape[0]
    count = min(at_most, features)
    variances, directions = eigh(covariance, subset_by_index=(features - count, features - 1))
    variances, directions = variances[::-1], directions[:, ::-1]
    directions = directions[:, variances > variances[0] * features * np.finfo(np.float64).eps]
    return with_signs_fixed(directions)


def with_signs_fixed(vectors: Floats) -> Floats:
    """Columns (m, k) with the largest component of each positive: an eigenvector's sign is open, machines are to agree.

    Example:
        >>> with_signs_fixed(np.array([[1.0], [-2.0]])).tolist()
        [[-1.0], [2.0]]
    """
    leading = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return np.asarray(vectors * np.where(leading < 0, -1.0, 1.0))


def one_direction_per_bit(z: NDArray[Any], centre: Floats, code_length: int, at_most: int | None = None) -> Floats:
    """The `code_length` leading principal directions, shape (D, code_length), or up to `at_most` of them.

    Args:
        z: features, shape (n, D).
        centre: mean of the rows, shape (D,).
        code_length: the number of directions needed.
        at_most: the number of directions wanted; None for those needed.

    Raises:
        InputError: `z` varies along fewer directions; at most min(D, n - 1) are possible.
    """
    found = min(z.shape[1], z.shape[0] - 1)
    if code_length <= found:
        directions = principal_directions(z, centre, at_most or code_length)
        found = directions.shape[1]
    if code_length > found:
        raise InputError(
            f"code_length is {code_length}, but X of shape {z.shape} varies along {found} directions only, "
            "and each bit takes one: shorten the code, or use lsh or sh"
        )
    return directions


def scatter(z: NDArray[Any], centre: Floats) -> Floats:
    """Sum over the rows of `z` of (z - centre)(z - centre)', in float64."""
    total: Floats = np.zeros((z.shape[1], z.shape[1]))
    for rows in row_blocks(z, at_least=COVARIANCE_ROWS):
        centred = z[rows] - centre
        total += centred.T @ centred
    return total
