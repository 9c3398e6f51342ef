r"""The codes that CNNH regresses to: the matrix of similarities as a product of binary codes.

CNNH (Xia et al., AAAI 2014) looks for the H in [-1, 1]^(n x K) that minimises

    || S - H H' / K ||^2        S_ij = 1 within a class, -1 across

and takes its signs. S depends on the labels alone, which makes two things cheap. For `classes` S is that of the
classes, an entry weighted by the number of pairs it stands for, and H has a row for each class; it is searched among
the corners of the box, where codes lie, so nothing is lost to rounding. For `samples` H is found as in the paper, one
coordinate after the other by a step of Newton's; but a row of S times a column of H comes from the sums of that column
over the classes, so that a step costs K operations and no n x n matrix is kept.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deephash_pipeline.common.errors import InputError

FEWEST_STARTS, MOST_STARTS = 10, 300
CLASSES_STARTED = 3000
"""How many random starts `classes` has, of which the best is kept: so many that this many classes' codes are drawn."""


@dataclass(frozen=True)
class SampleFactorisation:
    """How the matrix of samples is factorised.

    Attributes:
        samples: how many.
        sweeps: over the coordinates of their codes.

    Example:
        >>> similarity_codes([0, 0, 1], code_length=4, of_samples=SampleFactorisation(samples=3, sweeps=2)).shape
        (2, 4)
    """

    samples: int = 5000
    sweeps: int = 5


def similarity_codes(
    labels: ArrayLike,
    code_length: int,
    random_state: int = 0,
    of_samples: SampleFactorisation | None = None,
) -> NDArray[np.float32]:
    """Find a code for each class.

    Args:
        labels: integers of shape (samples,), classes numbered from 0.
        code_length: bits.
        random_state: seed of random starts, and of the choice of samples.
        of_samples: how the matrix of samples is factorised; None to factorise that of the classes.

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
    if of_samples is None:
        return factorise_classes(np.bincount(labels), code_length, generator).astype(np.float32)
    chosen = generator.permutation(labels)[: of_samples.samples]
    codes = factorise_samples(chosen, code_length, of_samples.sweeps, generator)
    majority = class_sums(np.where(codes >= 0, 1.0, -1.0), chosen, int(labels.max()) + 1)
    return np.where(majority >= 0, 1, -1).astype(np.float32)


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


def factorise_samples(
    labels: NDArray[np.int64], code_length: int, sweeps: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return H of shape (samples, code_length) in [-1, 1], by coordinate Newton steps from uniform random numbers."""
    codes = generator.uniform(-1, 1, (len(labels), code_length))
    error = factorisation_error(codes, labels)
    for _ in range(sweeps):
        moved = newton_sweep(codes, labels, generator)
        if (lower := factorisation_error(moved, labels)) < error:
            codes, error = moved, lower
    return codes


def newton_sweep(
    codes: NDArray[np.float64], labels: NDArray[np.int64], generator: np.random.Generator
) -> NDArray[np.float64]:
    """Move every coordinate of H once, in random order, to the minimum of a parabola, if that is within the box."""
    codes = codes.copy()
    samples, code_length = codes.shape
    gram = codes.T @ codes
    sums = class_sums(codes, labels, int(labels.max()) + 1)
    totals = sums.sum(axis=0)
    for place in generator.permutation(samples * code_length):
        i, j = divmod(int(place), code_length)
        own, value = codes[i], codes[i, j]
        # With L = H H' - K S these are L_i. H_.j and L_ii; the derivatives are four times what stands here.
        slope = own @ gram[j] - code_length * (2 * sums[labels[i], j] - totals[j])
        curvature = gram[j, j] + value**2 + own @ own - code_length
        # Where the parabola bends down, the step is as far downhill as the box is wide.
        step = min(max(-slope / max(curvature, 1e-12), -1 - value), 1 - value)
        gram[j] += step * own
        gram[:, j] = gram[j]
        gram[j, j] += step * (value + step)
        sums[labels[i], j] += step
        totals[j] += step
        own[j] += step
    return codes


def factorisation_error(codes: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Mean square of S - H H' / K over all ordered pairs, a sample with itself included.

    Example:
        >>> factorisation_error(np.array([[1.0, 1.0], [-1.0, -1.0]]), np.array([0, 1]))
        0.0
    """
    samples, code_length = codes.shape
    sums = class_sums(codes, labels, int(labels.max()) + 1)
    # The sum over pairs of S_ij h_i . h_j, then that of (h_i . h_j)^2; S_ij^2 is 1.
    agreement = 2 * (sums**2).sum() - (sums.sum(axis=0) ** 2).sum()
    squares = ((codes.T @ codes) ** 2).sum()
    return float(1 - 2 * agreement / (code_length * samples**2) + squares / (code_length * samples) ** 2)


def class_sums(codes: NDArray[np.float64], labels: NDArray[np.int64], classes: int) -> NDArray[np.float64]:
    """Add up the rows of each class: (classes, code_length).

    Example:
        >>> class_sums(np.eye(3), np.array([0, 1, 0]), classes=2)
        array([[1., 0., 1.],
               [0., 1., 0.]])
    """
    sums = np.zeros((classes, codes.shape[1]))
    np.add.at(sums, labels, codes)
    return sums
