"""BRE: bits whose Hamming distances rebuild given distances."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeFloat, PositiveInt

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing.encoder import learned
from deephash_pipeline.hashing.kernels.bre import Pairs, project_rows, sweep_bits
from deephash_pipeline.hashing.linear import LinearHashFunction, feature_mean, hyperplanes_through
from deephash_pipeline.hashing.rows import Floats, Ints
from deephash_pipeline.retrieval.labels import share_a_label

# Standard deviation of the weights before the first sweep, from the published code.
DEVIATION_OF_WEIGHTS = 0.001


class BRE(LinearHashFunction):
    """Binary reconstructive embedding (Kulis & Darrell, NIPS 2009).

    A bit is 1[sum_q w_q k(x, a_q) >= 0], with anchors a_q from the training set. The weights of all bits are learned
    together, so that the distances of codes, Hamming distance over K, rebuild given distances d_ij: minimise half the
    sum of their squared differences over random pairs. A sweep takes one weight of each bit, drawn at random, and gives
    it the best of all values: as the weight grows, each row changes its bit once, so that one walk along the sorted
    thresholds finds the objective everywhere. No sweep raises it. Learning ends with a sweep that gains no more than
    `tolerance`, or after `maximum_sweeps`.

    Rows have unit length and the kernel is the dot product, as in the published code; the distance of two rows is
    ||x_i - x_j||^2 / 2 over the largest of all. With this kernel a bit's anchors add up to one hyperplane, and dividing
    a row by its length moves no sign: what is stored is a linear encoder of z as it comes. The defaults are those of
    the authors' published code, but for `maximum_sweeps`.

    Args:
        code_length: number of bits per code, 1 to 4,096.
        supervised: rebuild distances given by labels, 0 within a class (for rows that share a label) and 1 between
            classes, the paper's supervised setting; else those between features, all that the published code offers.
        centre: put the hyperplanes through the training set's mean instead of the origin. The published code leaves
            this to its caller; features after a ReLU lie in one orthant, which few hyperplanes through the origin cut.
        training_rows: rows of the training set to learn from, drawn at random; memory and time grow with its square.
        anchors: rows that a bit's hyperplane is made of, drawn for each bit from those learned from.
        pair_share: share of the rows learned from that each of them is paired with.
        tolerance: learning ends with the first sweep that lowers the objective by no more than this.
        maximum_sweeps: learning ends after this many sweeps in any case.
        random_state: seed of the rows, anchors, weights and pairs drawn.

    Attributes:
        objective_: float64, shape (sweeps + 1,), at the random weights and after each sweep; never rises.

    Example:
        >>> import numpy as np
        >>> z = np.random.default_rng(0).normal(size=(100, 8))
        >>> bre = BRE(code_length=6, tolerance=0.1).fit(z, z[:, 0] > 0)
        >>> bool(bre.objective_[-1] < bre.objective_[0])
        True
    """

    display_name = "BRE"
    reference = "Kulis & Darrell, Learning to hash with binary reconstructive embeddings, NIPS 2009"
    several_labels = True
    objective_: NDArray[np.float64] = learned("sweeps")
    supervised: bool = True
    centre: bool = True
    training_rows: Annotated[int, Field(ge=2)] = 1000
    anchors: PositiveInt = 20
    pair_share: Annotated[float, Field(gt=0, le=1)] = 0.05
    tolerance: NonNegativeFloat = 1.0
    maximum_sweeps: PositiveInt = 1000

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        generator = np.random.default_rng(self.random_state)
        rows = np.sort(generator.permutation(len(z))[: self.training_rows])
        centre = feature_mean(z) if self.centre else np.zeros(z.shape[1])
        points = _with_unit_length(z[rows] - centre)
        kernel = points @ points.T
        distances = _distances_of_labels(labels[rows]) if self.supervised else _distances_of_points(kernel)
        anchors, weights, objective = self._learn_weights(kernel, distances, generator)
        directions = np.stack([of_bit @ points[at] for of_bit, at in zip(weights, anchors, strict=True)], axis=1)
        return {**hyperplanes_through(centre, directions), "objective": objective}

    def _learn_weights(
        self, kernel: Floats, distances: Floats, generator: np.random.Generator
    ) -> tuple[Ints, Floats, Floats]:
        """Anchors and weights (K, anchors), and the objective's course, from kernel and distances (rows, rows)."""
        rows = len(kernel)
        anchors = _draw_subsets(self.code_length, rows, min(self.anchors, rows), generator)
        weights = DEVIATION_OF_WEIGHTS * generator.standard_normal(anchors.shape)
        bits = np.array([project_rows(kernel, *of_bit) >= 0 for of_bit in zip(anchors, weights, strict=True)])
        partners = _draw_subsets(rows, rows, max(1, int(self.pair_share * rows)), generator)
        pairs = _list_pairs(partners, bits, distances)
        objective = [self._objective(pairs)]
        for _ in range(self.maximum_sweeps):
            sweep_bits(kernel, anchors, weights, generator.integers(anchors.shape[1], size=self.code_length), pairs)
            objective.append(self._objective(pairs))
            if objective[-2] - objective[-1] <= self.tolerance:
                break
        return anchors, weights, np.array(objective)

    def _objective(self, pairs: Pairs) -> float:
        # A pair has two entries.
        return float(np.vdot(pairs.excess, pairs.excess)) / (4 * self.code_length**2)


def _with_unit_length(points: Floats) -> Floats:
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    points = points / np.where(lengths > 0, lengths, 1.0)
    if np.allclose(points, points[0]):
        raise InputError(
            f"X has the same direction in all {len(points)} rows that BRE learns from: check the network that gave "
            "these features, or raise training_rows"
        )
    return points


def _distances_of_labels(labels: Ints) -> Floats:
    similar = share_a_label(labels, labels)
    if similar.all():
        raise InputError(
            f"y names one class only in the {len(labels)} rows that BRE learns from: pass images of at least two, "
            "raise training_rows, or set supervised to false"
        )
    return (~similar).astype(np.float64)


def _distances_of_points(kernel: Floats) -> Floats:
    squares = np.diag(kernel)
    distances: Floats = (squares[:, np.newaxis] + squares) / 2 - kernel
    distances /= distances.max()
    return distances


def _draw_subsets(subsets: int, rows: int, size: int, generator: np.random.Generator) -> Ints:
    """Random rows without repetition, int64, shape (subsets, size)."""
    return np.array([generator.choice(rows, size, replace=False) for _ in range(subsets)])


def _list_pairs(partners: Ints, bits: NDArray[np.bool_], distances: Floats) -> Pairs:
    """Pair each row with its partners (rows, count) but itself; bits are (K, rows), distances (rows, rows)."""
    one, other = np.repeat(np.arange(len(partners)), partners.shape[1]), partners.ravel()
    one, other = one[one != other], other[one != other]
    row, partner = np.concatenate([one, other]), np.concatenate([other, one])
    order = np.argsort(row, kind="stable")
    row, partner = row[order], partner[order]
    hamming = np.count_nonzero(bits[:, row] != bits[:, partner], axis=0)
    first = np.searchsorted(row, np.arange(len(partners) + 1))
    return Pairs(first, partner, hamming - len(bits) * distances[row, partner])
