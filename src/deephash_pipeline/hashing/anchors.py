"""Gaussian kernels between rows and anchors: the features that kernel methods learn from and encode by."""

from abc import abstractmethod
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt
from scipy.linalg import cho_factor, cho_solve

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing.encoder import doubles, learned
from deephash_pipeline.hashing.hash_function import HashFunction
from deephash_pipeline.hashing.rows import Floats, Ints, require_different_rows, row_blocks

# Share of the mean squared kernel value that is added to every anchor's: some anchors may be equal.
ANCHOR_RIDGE = 1e-8

# Share of the anchors' differences that rounding may move them by.
MOST_ROUNDING = 0.01

Weight = Annotated[float, Field(ge=0, le=1e6)]


class Anchors(NamedTuple):
    """What turns a row x into centred kernels exp(-decay ||x - anchor||^2) - mean.

    Attributes:
        rows: float32, shape (m, D), rows of the training set.
        decay: float64, shape (m,), 1 / (2 s), where s is the mean squared distance between a training row and an
            anchor.
        mean: float64, shape (m,), the kernels' means over the training set.
    """

    rows: NDArray[np.float32]
    decay: Floats
    mean: Floats

    def kernels(self, z: NDArray[Any]) -> Floats:
        """Centred kernels of the rows of `z` (n, D), shape (n, m)."""
        return np.asarray(gaussian_kernels(z, self.rows, self.decay) - self.mean)

    def arrays(self, projection: Floats) -> dict[str, NDArray[Any]]:
        """What a `KernelHashFunction` stores, for a projection of shape (m, K)."""
        threshold = self.mean @ projection
        return {"anchors": self.rows, "decay": self.decay, "projection": projection, "threshold": threshold}


class KernelHashFunction(HashFunction):
    """Bit k of a row is 1 if and only if its kernels' product with projection_[:, k] is at least threshold_[k].

    Attributes:
        anchors_: float32, shape (anchors, D), rows of the training set.
        decay_: float64, shape (anchors,), 1 / (2 s) in the kernel exp(-||x - anchor||^2 / (2 s)), the same for all
            anchors: s is the mean squared distance between a training row and an anchor.
        projection_: float64, shape (anchors, code_length); float64, since the coefficients of similar anchors may be
            large and cancel.
        threshold_: float64, shape (code_length,), the projections of the kernels' means.

    Example:
        >>> from deephash_pipeline.hashing import HASH_FUNCTIONS
        >>> from deephash_pipeline.hashing.anchors import KernelHashFunction
        >>> [name for name, method in HASH_FUNCTIONS.items() if issubclass(method, KernelHashFunction)]
        ['ksh', 'sdh', 'fsdh', 'cosdish']
    """

    supervised = True
    anchors_: NDArray[np.float32] = learned("anchors", "features")
    decay_: NDArray[np.float64] = learned("anchors")
    projection_: NDArray[np.float64] = learned("anchors", "code_length")
    threshold_: NDArray[np.float64] = learned("code_length")

    def _outputs(self, z: Any, xp: Any = np) -> Any:
        decay, projection, threshold = doubles(xp, self.decay_, self.projection_, self.threshold_)
        return gaussian_kernels(z, self.anchors_, decay, xp) @ projection - threshold


def draw_anchors(z: NDArray[Any], count: int, generator: np.random.Generator) -> Anchors:
    """Draw rows of `z` (n, D) without replacement, `count` or all, and measure the kernels with them.

    Raises:
        InputError: all rows of `z` are equal.

    Example:
        >>> z = np.arange(8.0).reshape(4, 2)
        >>> draw_anchors(z, 3, np.random.default_rng(0)).rows.shape
        (3, 2)
    """
    require_different_rows(z, "distances")
    drawn = generator.choice(len(z), min(count, len(z)), replace=False)
    anchors = rounded_anchors(z[drawn])
    mean_distance = sum(distances_to_anchors(z[rows], anchors).sum() for rows in row_blocks(z)) / len(z) / len(anchors)
    decay = np.full(len(anchors), 0.5 / mean_distance)
    mean = sum(gaussian_kernels(z[rows], anchors, decay).sum(axis=0) for rows in row_blocks(z)) / len(z)
    return Anchors(anchors, decay, mean)


def rounded_anchors(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Anchors (m, D) in single precision, as they are stored.

    Raises:
        InputError: they differ by so little, far from 0, that rounding would mix them up.

    Example:
        >>> rounded_anchors(np.array([[1e9], [1e9 + 1]]))
        Traceback (most recent call last):
        deephash_pipeline.common.errors.InputError: X differs by 1 around 1e+09, which single precision loses: su...
    """
    anchors = rows.astype(np.float32)
    apart = float(np.abs(rows - rows[0]).max(initial=0))
    if np.abs(anchors - rows).max(initial=0) > MOST_ROUNDING * apart:
        raise InputError(
            f"X differs by {apart:.0g} around {np.abs(rows).max():.0e}, which single precision loses: subtract its "
            "mean first"
        )
    return anchors


class KernelRegression:
    """Least squares from the centred kernels of a training set to its codes.

    Args:
        z: features, shape (n, D).
        anchors: anchors that give their kernels.

    Example:
        >>> z = np.arange(8.0).reshape(4, 2)
        >>> regression = KernelRegression(z, draw_anchors(z, 2, np.random.default_rng(0)))
        >>> regression.solve(np.ones((4, 12))).shape, regression.fitted(np.ones((4, 12))).shape
        ((2, 12), (4, 12))
    """

    def __init__(self, z: NDArray[Any], anchors: Anchors) -> None:
        self.anchors = anchors
        self.kernels = np.concatenate([anchors.kernels(z[rows]) for rows in row_blocks(z)])
        moment = self.kernels.T @ self.kernels
        moment += ANCHOR_RIDGE * np.trace(moment) / len(moment) * np.eye(len(moment))
        self.factor = cho_factor(moment)

    def solve(self, codes: Floats) -> Floats:
        """P = (phi' phi)^-1 phi' B for codes B of shape (n, K), shape (m, K)."""
        return np.asarray(cho_solve(self.factor, self.kernels.T @ codes))

    def fitted(self, codes: Floats) -> Floats:
        """Phi P, what the kernels can say of codes of shape (n, K), shape (n, K)."""
        return np.asarray(self.kernels @ self.solve(codes))


class DiscreteHashFunction(KernelHashFunction):
    """Learns the training set's codes as discrete variables, and how to tell them from kernels by regression.

    Args:
        anchors: number of training rows that the kernel compares with; all rows if there are fewer.
        rounds: number of times that the codes are solved for.
    """

    anchors: PositiveInt = 1000
    rounds: PositiveInt = 5

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        generator = np.random.default_rng(self.random_state)
        anchors = draw_anchors(z, self.anchors, generator)
        regression = KernelRegression(z, anchors)
        codes = self._learn_codes(class_columns(labels), regression, generator)
        return anchors.arrays(regression.solve(codes))

    @abstractmethod
    def _learn_codes(self, classes: Floats, regression: KernelRegression, generator: np.random.Generator) -> Floats:
        """Codes of the training set, 1 and -1, shape (n, K).

        Args:
            classes: Y, 1 for each label of a row, shape (n, C).
            regression: onto codes, from the training set's kernels.
            generator: source of the draws.
        """


def signs_of_projections(projected: Floats) -> Floats:
    """1 where a bit is 1, the projection at least 0, and -1 elsewhere.

    Example:
        >>> signs_of_projections(np.array([-0.2, 0.0, 3.0]))
        array([-1.,  1.,  1.])
    """
    return np.where(projected >= 0, 1.0, -1.0)


def random_signs(shape: tuple[int, int], generator: np.random.Generator) -> Floats:
    """Codes to start from: 1 and -1, either with probability 1/2.

    Example:
        >>> np.abs(random_signs((2, 3), np.random.default_rng(0)))
        array([[1., 1., 1.],
               [1., 1., 1.]])
    """
    return np.where(generator.integers(0, 2, shape), 1.0, -1.0)


def class_columns(labels: Ints) -> Floats:
    """Y of shape (n, C), 1 for each label of a row: one-hot for classes 0..C-1 of shape (n,), else `labels` (n, C).

    Example:
        >>> class_columns(np.array([1, 0, 1]))
        array([[0., 1.],
               [1., 0.],
               [0., 1.]])
    """
    if labels.ndim == 2:
        return labels.astype(np.float64)
    return np.equal.outer(labels, np.arange(labels.max() + 1)).astype(np.float64)


def distances_to_anchors(z: Any, anchors: NDArray[np.float32], xp: Any = np) -> Any:
    """Squared Euclidean distances between the rows of `z` (n, D) and of `anchors` (m, D), in float64, shape (n, m).

    They are computed by NumPy, or by the module `xp`; from the anchors' mean, as squares far from 0 lose digits.

    Example:
        >>> distances_to_anchors(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]))
        array([[25.,  1.]])
    """
    wide, wide_anchors = doubles(xp, z, anchors)
    mean = wide_anchors.mean(0)
    wide, wide_anchors = wide - mean, wide_anchors - mean
    distances = (wide**2).sum(1)[:, None] + (wide_anchors**2).sum(1)
    distances -= 2 * wide @ wide_anchors.T
    # Rounding can leave a row a little less than no distance from its own anchor.
    return distances.clip(0.0)


def gaussian_kernels(z: Any, anchors: NDArray[np.float32], decay: Any, xp: Any = np) -> Any:
    """exp(-decay ||x - anchor||^2) for the rows x of `z` (n, D), shape (n, m).

    Example:
        >>> z, anchors = np.array([[0.0, 0.0]]), np.array([[0.0, 0.0], [3.0, 4.0]])
        >>> gaussian_kernels(z, anchors, np.array([0.04, 0.04])).round(4)
        array([[1.    , 0.3679]])
    """
    return xp.exp(-decay * distances_to_anchors(z, anchors, xp))
