r"""The codes that CNNH regresses to: the matrix of similarities as a product of binary codes.

CNNH (Xia et al., AAAI 2014) looks for the H in [-1, 1]^(n x K) that minimises

    || S - H H' / K ||^2        S_ij = 1 within a class, -1 across

and takes its signs. S depends on the labels alone, so it is the matrix of classes that is factorised here, an entry
weighted by the number of pairs it stands for. H has a row for each class; it is searched among the corners of the box,
where codes lie, so nothing is lost to rounding.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deephash_pipeline.common.errors import InputError

FEWEST_STARTS, MOST_STARTS = 10, 300
CLASSES_STARTED = 3000
"""How many random starts `classes` has, of which the best is kept: so many that this many classes' codes are drawn."""


def similarity_codes(labels: ArrayLike, code_length: int, random_state: int = 0) -> NDArray[np.float32]:
    """Find a code for each class.

    Args:
        labels: integers of shape (samples,), classes numbered from 0.
        code_length: bits.
        random_state: seed of random starts.

    Returns:
        float32 of shape (classes, code_length), of -1 and 1.

    Raises:
        InputError: labels that are none.

    Example:
        >>> similarity_codes([0, 0, 1], code_length=4).tolist()
        [[1.0, 1.0, 1.0, 1.0], [-1.0, -1.0, -1.0, -1.0]]
    """
    labels = np.asarray(labels)
    if labels.ndim != 1 or len(labels) == 0 or not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0:
        raise InputError(
            f"labels are {labels.dtype} of shape {labels.shape}: pass one whole number for each image of the training "
            "set, classes numbered from 0"
        )
    generator = np.random.default_rng(random_state)
    return factorise_classes(np.bincount(labels), code_length, generator).astype(np.float32)


def factorise_classes(
    class_sizes: NDArray[np.int64], code_length: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return codes (classes, code_length) of -1 and 1 that no change of a single bit improves, the best of some.

    Example:
        >>> factorise_classes(np.array([5, 5]), 4, np.random.default_rng(0)).sum(axis=0).tolist()
        [0.0, 0.0, 0.0, 0.0]
    """
    weights = class_sizes / class_sizes.sum()
    starts = min(max(CLASSES_STARTED // len(weights), FEWEST_STARTS), MOST_STARTS)
    found = [_descend(weights, code_length, generator) for _ in range(starts)]
    return min(found, key=lambda codes: _excess(codes, weights))


def _descend(weights: NDArray[np.float64], code_length: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Flip the best bit of one class after the other, until none lowers the objective."""
    codes = generator.choice([-1.0, 1.0], (len(weights), code_length))
    changed = True
    while changed:
        changed = False
        for row in range(len(weights)):
            others = weights.copy()
            others[row] = 0
            while True:
                # A flip changes a product P by -2 b b', and (P + K)^2 by 4 - 4 b b' (P + K).
                pulls = codes[row] * ((others * (codes @ codes[row] + code_length)) @ codes)
                best = int(pulls.argmax())
                if pulls[best] <= others.sum() + 1e-9 * code_length:
                    break
                codes[row, best] *= -1
                changed = True
    return codes


def _excess(codes: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Weighted mean square of what the products of classes' codes lack to S; a class lacks nothing with itself."""
    lacking = codes @ codes.T / codes.shape[1] - (2 * np.eye(len(codes)) - 1)
    return float(weights @ lacking**2 @ weights)
