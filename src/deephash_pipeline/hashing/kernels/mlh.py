"""Descent on the objective of `MLH`, compiled: batch after batch, on one thread.

The matrices of a batch are too small for threads to gain by sharing them; so their number changes no result.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.machine_code import compiled

# Sums may be regrouped into vectors and multiplications joined with additions; infinities and NaN stay what they are.
REORDERED_SUMS = {"reassoc", "contract", "nsz"}

# Bound of the force that draws a bit's mean projection to zero, from the published code.
STRONGEST_PULL = np.float32(0.5)


class Features(NamedTuple):
    """Features, and how they are to be scaled: (z - centre) / scale, with a constant 1 after the last.

    Attributes:
        z: float32 or float64 (rows, D).
        centre: float64 (D,).
        scale: float64.

    Example:
        >>> z = np.array([[1.0, 3.0], [3.0, 1.0]])
        >>> Features(z, z.mean(axis=0), scale=1.0).centre
        array([2., 2.])
    """

    z: NDArray[Any]
    centre: NDArray[np.float64]
    scale: float


class Step(NamedTuple):
    """How a batch moves the weights, all float32; `MLH` says what each one is.

    Example:
        >>> float(Step(*np.float32([0.5, 0.75, 0.0, 1.0])).momentum)
        0.75
    """

    learning_rate: np.float32
    momentum: np.float32
    weight_decay: np.float32
    balance: np.float32


class Weights(NamedTuple):
    """What a stage changes.

    Attributes:
        values: float32 (D + 1, code_length), one bit's weights and, last, its bias per column.
        velocity: float32, of the same shape, what the last batch added to the values.
        ones: int64 (code_length,), to which the number of ones seen is added.

    Example:
        >>> Weights(np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32), np.zeros(4, np.int64)).ones
        array([0, 0, 0, 0])
    """

    values: NDArray[np.float32]
    velocity: NDArray[np.float32]
    ones: NDArray[np.int64]


# Loops, not expressions of whole arrays: the compiler takes several times as long over those.


@compiled()
def infer(projections: Any, losses: Any, codes: Any) -> float:
    """Find the codes g, h of largest losses[number of bits in which they differ] + g . a + h . b, exactly.

    This is the paper's loss-adjusted inference, in O(K log K): if m bits are to differ, it is best that those do which
    gain most by it, |a_k - b_k| over |a_k + b_k|.

    Args:
        projections: float32 (2, code_length), a and b.
        losses: float32 (code_length + 1,).
        codes: float32 (2, code_length); becomes g and h, 1 or -1.

    Returns:
        The maximum.

    Example: to differ in one bit of two is worth 4, more than the second bit loses by it.
        >>> codes = np.empty((2, 2), np.float32)
        >>> infer(np.float32([[3.0, 1.0], [3.0, 0.0]]), np.float32([0.0, 4.0, 0.0]), codes)
        11.0
        >>> codes.tolist()
        [[1.0, 1.0], [1.0, -1.0]]
    """
    code_length = len(losses) - 1
    gains = np.empty(code_length, np.float32)
    falling = np.empty(code_length, np.float32)
    for bit in range(code_length):
        gains[bit] = abs(projections[0, bit] - projections[1, bit]) - abs(projections[0, bit] + projections[1, bit])
        falling[bit] = -gains[bit]
    order = np.argsort(falling)
    gained, differing, best = 0.0, 0, float(losses[0])
    for place in range(code_length):
        gained += gains[order[place]]
        if gained + losses[place + 1] > best:
            best, differing = gained + losses[place + 1], place + 1
    agreeing = np.float32(0)
    for place in range(code_length):
        bit = order[place]
        same = 1 if place >= differing else -1
        codes[0, bit] = 1 if projections[0, bit] + same * projections[1, bit] >= 0 else -1
        codes[1, bit] = same * codes[0, bit]
        agreeing += abs(projections[0, place] + projections[1, place])
    return float(best + agreeing)


@compiled(fastmath=REORDERED_SUMS, error_model="numpy")
def _project(x: Any, weights: Any, projections: Any) -> None:
    first, second = projections[0], projections[1]
    for bit in range(len(first)):
        first[bit] = second[bit] = 0
    # Four features at a time: sums are loaded and stored once for four products.
    together = len(weights) // 4 * 4
    for start in range(0, together, 4):
        w0, w1, w2, w3 = weights[start], weights[start + 1], weights[start + 2], weights[start + 3]
        a0, a1, a2, a3 = x[0, start], x[0, start + 1], x[0, start + 2], x[0, start + 3]
        b0, b1, b2, b3 = x[1, start], x[1, start + 1], x[1, start + 2], x[1, start + 3]
        for bit in range(len(first)):
            first[bit] += a0 * w0[bit] + a1 * w1[bit] + a2 * w2[bit] + a3 * w3[bit]
            second[bit] += b0 * w0[bit] + b1 * w1[bit] + b2 * w2[bit] + b3 * w3[bit]
    for feature in range(together, len(weights)):
        for bit in range(len(first)):
            first[bit] += x[0, feature] * weights[feature, bit]
            second[bit] += x[1, feature] * weights[feature, bit]


@compiled(fastmath=REORDERED_SUMS, error_model="numpy")
def _move(weights: Any, step: Any, x: Any, slopes: Any, pull: Any) -> None:
    """Move the weights by x (pairs, 2, D + 1), slopes (pairs, 2, code_length) and the pull on each bit's mean."""
    pairs = np.float32(len(x))
    values, velocity = weights.values, weights.velocity
    features, code_length = velocity.shape
    total = np.zeros(features, np.float32)
    for pair in range(len(x)):
        for feature in range(features):
            total[feature] += x[pair, 0, feature]
    for feature in range(features):
        mean = total[feature] / pairs
        for bit in range(code_length):
            force = mean * pull[bit] + step.weight_decay * values[feature, bit]
            velocity[feature, bit] = step.momentum * velocity[feature, bit] - step.learning_rate * force
    rate = step.learning_rate / pairs
    _add_products(x.reshape(-1, features), slopes.reshape(-1, code_length), rate, velocity)
    for feature in range(features):
        for bit in range(code_length):
            values[feature, bit] += velocity[feature, bit]


@compiled(fastmath=REORDERED_SUMS, error_model="numpy")
def _add_products(x: Any, slopes: Any, rate: Any, velocity: Any) -> None:
    """Add x (rows, D + 1), transposed, times rate times slopes (rows, code_length), by four rows as in `_project`.

    The slopes are scaled in place.
    """
    # The better the codes, the fewer rows have any slope.
    sloping, count = np.empty(len(x), np.int64), 0
    for row in range(len(x)):
        slope_here = False
        for bit in range(slopes.shape[1]):
            slopes[row, bit] *= rate
            slope_here |= slopes[row, bit] != 0
        if slope_here:
            sloping[count] = row
            count += 1
    together = count // 4 * 4
    for start in range(0, together, 4):
        r0, r1, r2, r3 = sloping[start], sloping[start + 1], sloping[start + 2], sloping[start + 3]
        x0, x1, x2, x3 = x[r0], x[r1], x[r2], x[r3]
        s0, s1, s2, s3 = slopes[r0], slopes[r1], slopes[r2], slopes[r3]
        for feature in range(len(velocity)):
            of_feature = velocity[feature]
            f0, f1, f2, f3 = x0[feature], x1[feature], x2[feature], x3[feature]
            for bit in range(len(of_feature)):
                of_feature[bit] += f0 * s0[bit] + f1 * s1[bit] + f2 * s2[bit] + f3 * s3[bit]
    for place in range(together, count):
        row = sloping[place]
        for feature in range(len(velocity)):
            of_feature = velocity[feature]
            for bit in range(len(of_feature)):
                of_feature[bit] += x[row, feature] * slopes[row, bit]


@compiled(error_model="numpy")
def descend(features: Any, rows: Any, losses: Any, step: Any, weights: Any) -> tuple[float, float]:
    """Go through the batches of a stage.

    Args:
        features: a `Features`.
        rows: int64 (batches, pairs, 2), the rows of z that make a pair.
        losses: float32 (pairs, code_length + 1), of each pair of a batch by its number of differing bits.
        step: a `Step`.
        weights: a `Weights`; changed.

    Returns:
        Mean over all pairs of the upper bound and of the loss itself, each with the penalties on weights and balance.
    """
    batches, pairs, _ = rows.shape
    values = weights.values
    features_and_bias, code_length = values.shape
    x = np.ones((pairs, 2, features_and_bias), dtype=np.float32)
    projections = np.empty((pairs, 2, code_length), dtype=np.float32)
    slopes = np.empty_like(projections)
    codes = np.empty((2, code_length), dtype=np.float32)
    pull = np.empty(code_length, dtype=np.float32)
    bound = loss = 0.0
    kind = features.z.dtype
    centre, factor = features.centre.astype(kind), (np.ones(1) / features.scale).astype(kind)
    for batch in range(batches):
        for pair in range(pairs):
            for side in range(2):
                row = features.z[rows[batch, pair, side]]
                for feature in range(len(row)):
                    x[pair, side, feature] = (row[feature] - centre[feature]) * factor[0]
            _project(x[pair], values, projections[pair])
            bound += infer(projections[pair], losses[pair], codes)
            sizes: Any = np.float32(0)
            differing = 0
            for side in range(2):
                for bit in range(code_length):
                    one = projections[pair, side, bit] >= 0
                    sizes += abs(projections[pair, side, bit])
                    weights.ones[bit] += one
                    slopes[pair, side, bit] = (1 if one else -1) - codes[side, bit]
                    differing += side == 1 and one != (projections[pair, 0, bit] >= 0)
            bound -= sizes
            loss += losses[pair, differing]
        squares_of_means = squares = np.float32(0)
        for bit in range(code_length):
            total = np.float32(0)
            for pair in range(pairs):
                total += projections[pair, 0, bit]
            mean = total / np.float32(pairs)
            squares_of_means += mean * mean
            pull[bit] = step.balance * min(max(mean, -STRONGEST_PULL), STRONGEST_PULL)
        for feature in range(features_and_bias):
            for bit in range(code_length):
                squares += values[feature, bit] * values[feature, bit]
        penalty = (step.weight_decay * squares + step.balance * squares_of_means) / 2
        bound += pairs * penalty
        loss += pairs * penalty
        _move(weights, step, x, slopes, pull)
    return bound / (batches * pairs), loss / (batches * pairs)
