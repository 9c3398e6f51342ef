"""Hash functions of the form of the paper's Eqn. (2): one hyperplane per bit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hashing.encoder import Encoder, doubles, learned
from deephash_pipeline.hashing.hash_function import HashFunction
from deephash_pipeline.hashing.rows import Floats, row_blocks


class LinearEncoder(Encoder):
    """Bit k of a row is 1 if and only if z . projection_[:, k] >= threshold_[k].

    Centring is part of the threshold (the mean's projection), so a query costs one matrix product.

    Attributes:
        projection_: float32, shape (D, code_length), one hyperplane's normal per column.
        threshold_: float64, shape (code_length,).

    Example:
        >>> import numpy as np
        >>> arrays = {"projection": np.eye(3, 2), "threshold": [0.0, 0.5]}
        >>> LinearEncoder.from_arrays(2, arrays).transform([[0, 0.4, 9], [-1, 0.5, 9]]).astype(int).tolist()
        [[1, 0], [0, 1]]
    """

    projection_: NDArray[np.float32] = learned("features", "code_length")
    threshold_: NDArray[np.float64] = learned("code_length")

    def _outputs(self, z: Any, xp: Any = np) -> Any:
        projection, threshold = doubles(xp, self.projection_, self.threshold_)
        return z @ projection - threshold


class LinearHashFunction(HashFunction, LinearEncoder):
    """A linear encoder that learns its hyperplanes, most methods through one point: see `hyperplanes_through`.

    Example:
        >>> from deephash_pipeline.hashing import HASH_FUNCTIONS
        >>> [name for name, method in HASH_FUNCTIONS.items() if issubclass(method, LinearHashFunction)]
        ['lsh', 'pcah', 'itq', 'ldah', 'bre', 'mlh', 'lsh_centred', 'itq_cca', 'rotation', 'pca_rotation', 'srh']
    """


def hyperplanes_through(centre: Floats, directions: Floats) -> dict[str, NDArray[Any]]:
    """The arrays of a linear encoder with bit k = 1 if and only if (z - centre) . directions[:, k] >= 0.

    Args:
        centre: the point that all hyperplanes pass through, shape (D,).
        directions: normals of the hyperplanes, shape (D, code_length).

    Returns:
        `projection`, float32, shape (D, code_length), and `threshold`, float64, shape (code_length,).

    Example:
        >>> import numpy as np
        >>> hyperplanes_through(np.array([2.0, 3.0]), np.eye(2))["threshold"]
        array([2., 3.])
    """
    projection = directions.astype(np.float32)
    # The rounded directions give the threshold: rounding then turns a hyperplane but never moves it off the centre.
    return {"projection": projection, "threshold": centre @ projection.astype(np.float64)}


def feature_mean(z: NDArray[Any]) -> Floats:
    """Mean of the rows of `z` (n, D), summed in float64, shape (D,).

    Example:
        >>> feature_mean(np.array([[1.0, 2.0], [3.0, 6.0]], dtype=np.float32))
        array([2., 4.])
    """
    total: Floats = np.zeros(z.shape[1])
    for rows in row_blocks(z):
        total += z[rows].sum(axis=0, dtype=np.float64)
    total /= z.shape[0]
    return total


def project(z: NDArray[Any], directions: Floats) -> Floats:
    """The product z . directions in float64, shape (n, K), without a float64 copy of all of `z` (n, D).

    Example:
        >>> project(np.array([[1.0, 2.0]], dtype=np.float32), np.eye(2))
        array([[1., 2.]])
    """
    projected = np.empty((z.shape[0], directions.shape[1]))
    for rows in row_blocks(z):
        projected[rows] = z[rows] @ directions
    return projected
