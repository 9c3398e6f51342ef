"""Boosted decision trees with two classes: learned by scikit-learn, laid out as arrays that are walked through."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from deephash_pipeline.common.machine_code import compiled
from deephash_pipeline.hashing.rows import Floats, Ints

KEPT_WEIGHT = 0.99
"""Share of the weight of all rows that a tree learns from: the rows with the smallest weights are left out."""

SMALLEST_ERROR = 1e-10
"""Share of weight in error below which a tree is taken for perfect, and ends the boosting."""


class Ensemble(NamedTuple):
    """Trees of one depth, each with all its nodes: node i has the children 2 i + 1 and 2 i + 2, the last half has none.

    Attributes:
        feature: int32 (trees, nodes), which feature an inner node looks at.
        value: float64 (trees, nodes): of an inner node the threshold, beyond which a row goes on to the second child;
            of a leaf its vote.
        splits: int64 (D,), how many splits look at each feature.
    """

    feature: NDArray[np.int32]
    value: Floats
    splits: Ints


class EnsembleSize(NamedTuple):
    """How large an ensemble may become.

    Attributes:
        trees: number of trees.
        depth: splits from the root to a leaf.
        features_per_split: number of features that a split looks at; all if there are fewer.

    Example:
        >>> EnsembleSize(trees=200, depth=4, features_per_split=200).depth
        4
    """

    trees: int
    depth: int
    features_per_split: int


def boost(
    z: NDArray[np.float32], bits: Ints, weights: Floats, size: EnsembleSize, generator: np.random.Generator
) -> Ensemble:
    """Fit bits by the signs of a sum of trees' votes: AdaBoost, by its exponential loss.

    A tree with error e votes with 1/2 log((1 - e) / e), and the weight of each row grows or shrinks by the exponential
    of what it voted. To save time a split looks at some features only, drawn anew (lazy boosting), and rows with the
    smallest weights, `KEPT_WEIGHT` of all being left, are not learned from (weight trimming), which scikit-learn's
    AdaBoost does not have. A tree without an error is the last; those that are then missing vote 0.

    Args:
        z: features, shape (n, D).
        bits: -1 and 1, shape (n,).
        weights: weights of the rows at the beginning, at least 0, shape (n,); if all are 0, all rows weigh the same.
        size: size of the ensemble.
        generator: generator of these draws.

    Example:
        >>> z = np.array([[0.0], [1.0], [2.0], [3.0]], dtype=np.float32)
        >>> size = EnsembleSize(trees=2, depth=1, features_per_split=1)
        >>> trees = boost(z, np.array([-1, -1, 1, 1]), np.ones(4), size, np.random.default_rng(0))
        >>> np.sign(add_votes(z, trees.feature[np.newaxis], trees.value[np.newaxis]))[:, 0]
        array([-1., -1.,  1.,  1.])
    """
    trees, depth, features_per_split = size
    nodes = 2 ** (depth + 1) - 1
    ensemble = Ensemble(np.zeros((trees, nodes), np.int32), np.zeros((trees, nodes)), np.zeros(z.shape[1], np.int64))
    weights = weights / weights.sum() if weights.any() else np.full(len(bits), 1 / len(bits))
    for place in range(trees):
        tree = DecisionTreeClassifier(
            max_depth=depth,
            max_features=min(features_per_split, z.shape[1]),
            random_state=int(generator.integers(2**31)),
        ).fit(z, bits, sample_weight=without_the_smallest(weights))
        votes = tree.predict(z)
        error = float(weights[votes != bits].sum())
        if error >= 0.5:
            break
        vote = 0.5 * np.log((1 - error) / max(error, SMALLEST_ERROR))
        lay_out(tree, vote, ensemble.feature[place], ensemble.value[place])
        np.add.at(ensemble.splits, tree.tree_.feature[tree.tree_.feature >= 0], 1)
        if error < SMALLEST_ERROR:
            break
        weights = weights * np.exp(-vote * bits * votes)
        weights /= weights.sum()
    return ensemble


def without_the_smallest(weights: Floats) -> Floats:
    """Set to 0 the smallest weights (n,), as long as those that are left have `KEPT_WEIGHT` of all.

    Example:
        >>> without_the_smallest(np.array([50.0, 0.4, 0.5, 48.6, 0.5]))
        array([50. ,  0. ,  0. , 48.6,  0.5])
    """
    order = np.argsort(weights, kind="stable")
    dropped = np.cumsum(weights[order]) <= (1 - KEPT_WEIGHT) * weights.sum()
    kept = weights.copy()
    kept[order[dropped]] = 0
    return kept


def lay_out(tree: DecisionTreeClassifier, vote: float, feature: NDArray[np.int32], value: Floats) -> None:
    """Write a tree of -1 and 1 into the rows of an `Ensemble`; under a leaf that lies higher all leaves are alike."""
    fitted, inner = tree.tree_, len(value) // 2

    def place(node: int, at: int) -> None:
        is_leaf = fitted.children_left[node] < 0
        if at >= inner:
            value[at] = vote * tree.classes_[fitted.value[node, 0].argmax()]
            return
        if not is_leaf:
            feature[at], value[at] = fitted.feature[node], fitted.threshold[node]
        place(node if is_leaf else fitted.children_left[node], 2 * at + 1)
        place(node if is_leaf else fitted.children_right[node], 2 * at + 2)

    place(0, 0)


@compiled()
def add_votes(z: NDArray[np.float32], feature: NDArray[np.int32], value: Floats) -> Floats:
    """Sum of the votes of each of some ensembles.

    Args:
        z: features, shape (n, D).
        feature: features of `Ensemble`, shape (ensembles, trees, nodes).
        value: value of `Ensemble`, same shape.

    Returns:
        float64 (n, ensembles).

    Example:
        >>> feature, value = np.zeros((1, 1, 3), dtype=np.int32), np.array([[[0.5, -1.0, 1.0]]])
        >>> add_votes(np.array([[0.0], [1.0]], dtype=np.float32), feature, value)
        array([[-1.],
               [ 1.]])
    """
    ensembles, trees, nodes = feature.shape
    votes = np.zeros((len(z), ensembles))
    for row in range(len(z)):
        for ensemble in range(ensembles):
            for tree in range(trees):
                node = 0
                while node < nodes // 2:
                    beyond = z[row, feature[ensemble, tree, node]] > value[ensemble, tree, node]
                    node = 2 * node + (2 if beyond else 1)
                votes[row, ensemble] += value[ensemble, tree, node]
    return votes
