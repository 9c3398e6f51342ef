"""SpH: a bit says whether a row lies within a ball."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from deephash_pipeline.hashing.anchors import distances_to_anchors, rounded_anchors
from deephash_pipeline.hashing.encoder import doubles, learned
from deephash_pipeline.hashing.hash_function import HashFunction
from deephash_pipeline.hashing.rows import Floats, Ints, require_different_rows

# The authors' tolerances, as shares of n/4: mean deviation of the overlaps from it, and their standard deviation.
MEAN_TOLERANCE, SPREAD_TOLERANCE = 0.1, 0.15
ROWS_OF_A_START = 5
"""Training rows whose mean is where a centre starts."""


class SphericalHashing(HashFunction):
    """Spherical hashing (Heo, Lee, He, Chang & Yoon, CVPR 2012).

    Bit k is 1 inside a ball, ||x - c_k|| <= r_k. Balls enclose more closely than hyperplanes can. A radius is the
    median distance of the training rows from the centre, so that each bit halves them (of an odd number the middle one
    is inside); centres are pushed apart where two balls share more than a quarter of the rows, n/4, and drawn together
    where they share less ::

        c_i += 1/K sum_j 1/2 (o_ij - n/4) / (n/4) (c_i - c_j)

    until the overlaps o_ij are near n/4 on average (10 %) and in spread (15 %). Codes are compared by Hamming distance,
    not by the authors' own measure, as all codes here.

    Args:
        code_length: number of bits per code, 1 to 4,096.
        samples: number of training rows that centres and radii are fitted to; all rows if there are fewer.
        iterations: the most steps of the centres.
        random_state: seed of the samples and of the centres at the start.

    Attributes:
        centres_: float32, shape (code_length, D).
        squared_radii_: float64, shape (code_length,).

    Example:
        >>> import numpy as np
        >>> z = np.random.default_rng(0).normal(size=(200, 4))
        >>> codes = SphericalHashing(code_length=6).fit(z).transform(z)
        >>> codes.mean(axis=0).tolist()
        [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    """

    display_name = "SpH"
    reference = "Heo, Lee, He, Chang & Yoon, Spherical hashing, CVPR 2012, doi:10.1109/CVPR.2012.6248024"
    centres_: NDArray[np.float32] = learned("code_length", "features")
    squared_radii_: NDArray[np.float64] = learned("code_length")
    samples: Annotated[int, Field(ge=2)] = 10_000
    iterations: PositiveInt = 100

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        require_different_rows(z, "distances")
        generator = np.random.default_rng(self.random_state)
        drawn = np.sort(generator.choice(len(z), min(self.samples, len(z)), replace=False))
        rows = z[drawn].astype(np.float64)
        starts = generator.choice(len(rows), (self.code_length, min(ROWS_OF_A_START, len(rows))))
        centres = rows[starts].mean(axis=1)
        rounded_anchors(rows)
        inside, radii = balls(rows, centres)
        for _ in range(self.iterations):
            overlap = inside.T.astype(np.float64) @ inside
            if is_balanced(overlap, len(rows)):
                break
            centres = moved(centres, overlap, len(rows))
            inside, radii = balls(rows, centres)
        return {"centres": centres.astype(np.float32), "squared_radii": radii}

    def _outputs(self, z: Any, xp: Any = np) -> Any:
        (squared_radii,) = doubles(xp, self.squared_radii_)
        return squared_radii - distances_to_anchors(z, self.centres_, xp)


def balls(rows: Floats, centres: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Which of the rows (n, D) lie in each ball of median radius, (n, K), and the squared radii (K,).

    Centres count as they are stored, rounded to float32.

    Example:
        >>> rows, centres = np.array([[0.0], [1.0], [2.0], [5.0]]), np.array([[0.0]])
        >>> inside, squared_radii = balls(rows, centres)
        >>> inside[:, 0], squared_radii
        (array([ True,  True, False, False]), array([2.5]))
    """
    distances = distances_to_anchors(rows, centres.astype(np.float32))
    # Half way between two rows also of an odd number, whose median is a row: rounding would decide on which side it is.
    middle = (len(rows) - 1) // 2
    ordered = np.partition(distances, (middle, middle + 1), axis=0)
    squared_radii = (ordered[middle] + ordered[middle + 1]) / 2
    return distances <= squared_radii, squared_radii


def is_balanced(overlap: Floats, rows: int) -> bool:
    """Whether the rows that two balls share, (K, K), are near a quarter of all.

    Example:
        >>> is_balanced(np.array([[50, 25], [25, 50]]), rows=100)
        True
    """
    pairs = overlap[np.triu_indices(len(overlap), 1)]
    if not len(pairs):
        return True
    quarter = rows / 4
    near = np.abs(pairs - quarter).mean() <= MEAN_TOLERANCE * quarter
    return bool(near and pairs.std() <= SPREAD_TOLERANCE * quarter)


def moved(centres: Floats, overlap: Floats, rows: int) -> Floats:
    """Centres (K, D) after a step apart where their balls' overlap (K, K) is above a quarter of the rows."""
    force = (overlap - rows / 4) / (rows / 4) / 2
    np.fill_diagonal(force, 0.0)
    # sum_j f_ij (c_i - c_j)
    return np.asarray(centres + (force.sum(axis=1)[:, np.newaxis] * centres - force @ centres) / len(centres))
