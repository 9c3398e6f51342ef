"""FastHash: bits by graph cuts, and boosted decision trees that tell them from features."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing.encoder import learned
from deephash_pipeline.hashing.fast_hash.block_graph_cut import blocks_of, draw_pairs, infer_bits
from deephash_pipeline.hashing.fast_hash.boosted_trees import Ensemble, EnsembleSize, add_votes, boost
from deephash_pipeline.hashing.hash_function import HashFunction
from deephash_pipeline.hashing.rows import Ints, require_different_rows


class FastHash(HashFunction):
    """Fast supervised hashing with decision trees (Lin, Shen, Shi, van den Hengel & Suter, CVPR 2014).

    Bit after bit, in two steps. The first finds the bits b in {-1, 1}^n of the training set that lower the squared
    hinge loss of pairs, with r the number of the bit and d the Hamming distance of a pair after r bits::

        (d / r)^2 for similar pairs,    max(1/2 - d / r, 0)^2 for others

    which is a quadratic function of b: `infer_bits` lowers it by graph cuts of one block, the rows of a label, after
    the other. The second fits b by boosted trees, see `boost`, with rows weighted by what their pairs may gain. The
    bits that the trees then say are those that the next bit adds to. Bit k of a row is 1 if and only if the votes of
    its trees add up to at least 0.

    Defaults are those of the authors' code, <https://bitbucket.org/chhshen/fasthash>. Rows with several labels are
    similar if they share one; a row is in the blocks of all its labels.

    Args:
        code_length: number of bits per code, 1 to 4,096.
        trees: number of trees of each bit.
        depth: depth of a tree.
        features_per_split: number of features that a split looks at, drawn anew.
        partners: similar and dissimilar rows that each row is compared with, drawn once.
        passes: number of passes over the blocks, for each bit.
        random_state: seed of all draws.

    Attributes:
        feature_: int32 (code_length, trees, nodes), the feature that a node looks at, see `Ensemble`.
        value_: float64 of the same shape, thresholds and votes.
        splits_: int64 (D,), how many splits look at each feature.

    Example:
        >>> labels = np.arange(60) % 3
        >>> z = np.random.default_rng(0).normal(size=(60, 3)) + 6 * np.eye(3)[labels]
        >>> codes = FastHash(code_length=8, trees=5).fit(z, labels).transform(z)
        >>> len(np.unique(codes[labels == 0], axis=0)) < 5
        True
    """

    display_name = "FastHash"
    reference = (
        "Lin, Shen, Shi, van den Hengel & Suter, Fast supervised hashing with decision trees for high-dimensional "
        "data, CVPR 2014, arXiv:1404.1561"
    )
    supervised = True
    several_labels = True
    feature_: NDArray[np.int32] = learned("code_length", "trees", "nodes")
    value_: NDArray[np.float64] = learned("code_length", "trees", "nodes")
    splits_: NDArray[np.int64] = learned("features")
    trees: PositiveInt = 200
    depth: Annotated[int, Field(ge=1, le=12)] = 4
    features_per_split: PositiveInt = 200
    partners: PositiveInt = 100
    passes: PositiveInt = 2

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        require_different_rows(z, "splits")
        generator = np.random.default_rng(self.random_state)
        z = np.ascontiguousarray(z, dtype=np.float32)
        pairs, blocks = draw_pairs(labels, self.partners, generator), blocks_of(labels, generator)
        distance = np.zeros(len(pairs.first), dtype=np.int64)
        learned: list[Ensemble] = []
        size = EnsembleSize(self.trees, self.depth, self.features_per_split)
        for bit in range(1, self.code_length + 1):
            weights = pairs.matrix(weights_of_pairs(distance, pairs.similar, bit), len(z))
            wanted = infer_bits(weights, blocks, self.passes, generator)
            gain = np.asarray(abs(weights).sum(axis=1), dtype=np.float64).ravel()
            trees = boost(z, wanted, gain, size, generator)
            learned.append(trees)
            said = add_votes(z, trees.feature[np.newaxis], trees.value[np.newaxis])[:, 0] >= 0
            distance += said[pairs.first] != said[pairs.second]
        feature, value, splits = (np.stack(part) for part in zip(*learned, strict=True))
        if not splits.any():
            raise InputError(
                "X differs too little for trees, to which values nearer than 1e-7 are equal: scale the features up"
            )
        return {"feature": feature, "value": value, "splits": splits.sum(axis=0)}

    def _set_arrays(self, arrays: Mapping[str, Any]) -> None:
        super()._set_arrays(arrays)
        # What walks through the trees checks no index.
        nodes = self.feature_.shape[2]
        if not nodes or nodes & (nodes + 1):
            raise InputError(f"arrays of FastHash have trees of {nodes} nodes, not 2^n - 1: fit the encoder again")
        if self.feature_.min(initial=0) < 0 or self.feature_.max(initial=0) >= self.n_features_in_:
            raise InputError(
                f"array feature of FastHash names a feature outside 0..{self.n_features_in_ - 1}: fit the encoder again"
            )

    def _outputs(self, z: Any, xp: Any = np) -> Any:
        return add_votes(z.astype(np.float32), self.feature_, self.value_)


def weights_of_pairs(distance: Ints, similar: NDArray[np.bool_], bit: int) -> Ints:
    """A_ij: what a pair loses where a bit is equal, less what it loses where it differs, times 4 r^2.

    Args:
        distance: Hamming distance of each pair in all bits before, shape (pairs,).
        similar: shape (pairs,).
        bit: r, counted from 1.

    Returns:
        Whole numbers, shape (pairs,): below 0 for similar pairs, at least 0 for others.

    Example:
        >>> weights_of_pairs(np.array([0, 1, 0, 1]), np.array([True, True, False, False]), bit=2).tolist()
        [-4, -12, 4, 0]
    """
    lacking = np.maximum(bit - 2 * distance, 0)
    return np.where(similar, -4 * (2 * distance + 1), lacking**2 - np.maximum(lacking - 2, 0) ** 2)
