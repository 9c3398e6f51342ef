"""Coordinate descent on the objective of `BRE`, compiled: one weight of each bit, set to the best of all its values.

Let s be a bit's values on the training rows, 1 or -1, and R the number of bits by which a pair's distance exceeds its
target, without this bit's share. A pair that the bit sets apart then has R + 1 instead of R, which adds R + 1/2 to half
the sum of squares: the pair's coupling. Thus the objective is, but for a constant, the sum of couplings over the pairs
that s sets apart, and giving row i the other value adds s_i times the sum of coupling s_j over its pairs (i, j).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.machine_code import compiled

# A row whose kernel value is smaller keeps its bit, since only a weight out of all proportion could change it.
SMALLEST_KERNEL_VALUE = 1e-6
# How far from the outermost thresholds the values beyond them are tried.
BEYOND_OUTERMOST = 5e-7


class Pairs(NamedTuple):
    """The pairs of training rows, each of them listed at both of its rows; so there are twice as many entries.

    Attributes:
        first: int64 (rows + 1,); the entries of row i are first[i] to first[i + 1] - 1.
        partner: int64 (entries,), the other row.
        excess: float64 (entries,), Hamming distance minus `code_length` times the target distance; kept up to date.

    Example: of three rows the middle one is paired with both others, and one bit sets it apart from the first.
        >>> pairs = Pairs(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]), np.array([1.0, 1.0, 0.0, 0.0]))
        >>> couple(np.array([1.0, -1.0, -1.0]), pairs)
        array([0.5, 0.5, 0.5, 0.5])
    """

    first: NDArray[np.int64]
    partner: NDArray[np.int64]
    excess: NDArray[np.float64]


# Loops, not expressions of whole arrays: the compiler takes several times as long over those.


@compiled()
def project_rows(kernel: Any, anchors: Any, weights: Any) -> Any:
    """Project the rows of a kernel (rows, rows) on one bit, whose anchors and weights are (anchors,); (rows,)."""
    projection = np.zeros(len(kernel))
    for position in range(len(anchors)):
        for row in range(len(kernel)):
            projection[row] += weights[position] * kernel[anchors[position], row]
    return projection


@compiled()
def _signs_of(projection: Any) -> Any:
    signs = np.empty(len(projection))
    for row in range(len(projection)):
        signs[row] = 1.0 if projection[row] >= 0 else -1.0
    return signs


@compiled()
def couple(signs: Any, pairs: Any) -> Any:
    """Compute each entry's coupling for a bit of values `signs` (rows,) that counts in `pairs.excess`; (entries,)."""
    coupling = np.empty(len(pairs.excess))
    for row in range(len(signs)):
        for entry in range(pairs.first[row], pairs.first[row + 1]):
            coupling[entry] = pairs.excess[entry] + 0.5 - (signs[row] != signs[pairs.partner[entry]])
    return coupling


@compiled()
def cost(signs: Any, pairs: Any, coupling: Any) -> float:
    """Sum the coupling over the pairs that a bit of values `signs` (rows,) sets apart."""
    twice = 0.0
    for row in range(len(signs)):
        for entry in range(pairs.first[row], pairs.first[row + 1]):
            twice += coupling[entry] * (signs[row] != signs[pairs.partner[entry]])
    return float(twice / 2)


@compiled()
def best_weight(kernel_values: Any, projection: Any, weight: float, pairs: Any, coupling: Any) -> Any:
    """Find the value of one anchor's weight at which the bit costs least.

    As the weight grows, the bit of each row changes once, at a threshold of its own; between two thresholds all values
    are as good. Of each such interval the middle is tried, from the lowest up.

    Args:
        kernel_values: float64 (rows,), kernel of each row and the anchor.
        projection: float64 (rows,), of each row at the present weight.
        weight: the present weight.
        pairs: a `Pairs`.
        coupling: float64 (entries,), from `couple`.
    """
    signs = _signs_of(projection)
    movable = np.empty(len(projection), np.int64)
    count = 0
    for row in range(len(projection)):
        if abs(kernel_values[row]) > SMALLEST_KERNEL_VALUE:
            signs[row] = -1.0 if kernel_values[row] > 0 else 1.0
            movable[count] = row
            count += 1
    if count == 0:
        return weight
    thresholds = np.empty(count)
    for place in range(count):
        thresholds[place] = weight - projection[movable[place]] / kernel_values[movable[place]]
    order = np.argsort(thresholds)
    best = thresholds[order[0]] - BEYOND_OUTERMOST
    present_cost = least_cost = cost(signs, pairs, coupling)
    for place in range(count):
        row = movable[order[place]]
        field = 0.0
        for entry in range(pairs.first[row], pairs.first[row + 1]):
            field += coupling[entry] * signs[pairs.partner[entry]]
        present_cost += signs[row] * field
        signs[row] = -signs[row]
        lower = thresholds[order[place]]
        upper = thresholds[order[place + 1]] if place + 1 < count else lower + 2 * BEYOND_OUTERMOST
        middle = (lower + upper) / 2
        # Where thresholds coincide, their rows change together.
        if present_cost < least_cost and lower < middle < upper:
            least_cost, best = present_cost, middle
    return best


@compiled()
def sweep_bits(kernel: Any, anchors: Any, weights: Any, positions: Any, pairs: Any) -> None:
    """Set one weight of each bit to its best value, one bit after the other; the objective does not rise.

    Args:
        kernel: float64 (rows, rows), symmetric.
        anchors: int64 (code_length, anchors), rows.
        weights: float64 (code_length, anchors); changed.
        positions: int64 (code_length,), which of a bit's weights to set.
        pairs: a `Pairs` that belongs to the weights; its excess is changed with them.
    """
    for bit in range(len(weights)):
        position = positions[bit]
        projection = project_rows(kernel, anchors[bit], weights[bit])
        signs = _signs_of(projection)
        coupling = couple(signs, pairs)
        former = weights[bit, position]
        weights[bit, position] = best_weight(kernel[anchors[bit, position]], projection, former, pairs, coupling)
        # Read off anew: rounding, or a row that counted as immovable, may yet have made the bit worse.
        changed = _signs_of(project_rows(kernel, anchors[bit], weights[bit]))
        if cost(changed, pairs, coupling) > cost(signs, pairs, coupling):
            weights[bit, position] = former
            continue
        for row in range(len(signs)):
            for entry in range(pairs.first[row], pairs.first[row + 1]):
                partner = pairs.partner[entry]
                apart, were_apart = changed[row] != changed[partner], signs[row] != signs[partner]
                pairs.excess[entry] += np.int64(apart) - np.int64(were_apart)
