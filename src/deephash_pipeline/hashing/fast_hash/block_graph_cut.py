"""The bits of a training set that minimise a quadratic function of pairs: a graph cut for one block after the other."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from deephash_pipeline.hashing.rows import Ints
from deephash_pipeline.retrieval.labels import share_a_label

LARGEST_BLOCK = 1000
"""Rows of a block at most: a cut takes time that grows faster than the block."""

ROWS_OF_A_CUT = 256


class SimilarPairs(NamedTuple):
    """Pairs of rows that are compared, each once, and no row with itself.

    Attributes:
        first: int64 (pairs,).
        second: int64 (pairs,), larger than the first.
        similar: bool (pairs,), whether they share a label.
    """

    first: Ints
    second: Ints
    similar: NDArray[np.bool_]

    def matrix(self, weights: Ints, rows: int) -> csr_matrix:
        """A with a weight for each pair, symmetric, of shape (rows, rows)."""
        upper = csr_matrix((weights, (self.first, self.second)), shape=(rows, rows))
        return (upper + upper.T).tocsr()


def draw_pairs(labels: Ints, partners: int, generator: np.random.Generator) -> SimilarPairs:
    """Draw for every row so many similar and so many dissimilar partners, or all where there are fewer.

    Args:
        labels: classes (n,), or multi-hot (n, classes).
        partners: number of partners of each kind; a row has more where others have drawn it.
        generator: source of the draws.

    Example:
        >>> pairs = draw_pairs(np.array([0, 0, 1]), 5, np.random.default_rng(0))
        >>> list(zip(pairs.first.tolist(), pairs.second.tolist(), pairs.similar.tolist()))
        [(0, 1, True), (0, 2, False), (1, 2, False)]
    """
    count, keys, kinds = len(labels), [], []
    for start in range(0, count, ROWS_OF_A_CUT):
        alike = share_a_label(labels[start : start + ROWS_OF_A_CUT], labels)
        for row, of_row in enumerate(alike, start):
            for kind in (True, False):
                others = np.flatnonzero(of_row == kind)
                others = others[others != row]
                if len(others) > partners:
                    others = generator.choice(others, partners, replace=False)
                keys.append(np.minimum(others, row) * count + np.maximum(others, row))
                kinds.append(np.full(len(others), kind))
    drawn, places = np.unique(np.concatenate(keys), return_index=True)
    return SimilarPairs(drawn // count, drawn % count, np.concatenate(kinds)[places])


def blocks_of(labels: Ints, generator: np.random.Generator) -> list[Ints]:
    """Rows in blocks whose rows are all similar to each other: those with one label in common, in parts if many.

    Args:
        labels: classes (n,), or multi-hot (n, classes); a row is in the blocks of each of its labels, and one without a
            label in a block of its own.
        generator: shuffles the rows of a label that has several blocks.
    """
    has_label = labels.astype(np.bool_) if labels.ndim == 2 else np.equal.outer(labels, np.arange(labels.max() + 1))
    blocks: list[Ints] = []
    for label in range(has_label.shape[1]):
        rows = np.flatnonzero(has_label[:, label])
        if len(rows) > LARGEST_BLOCK:
            rows = generator.permutation(rows)
        blocks += [rows[start : start + LARGEST_BLOCK] for start in range(0, len(rows), LARGEST_BLOCK)]
    return [*blocks, *np.flatnonzero(~has_label.any(axis=1))[:, np.newaxis]]


def infer_bits(weights: csr_matrix, blocks: Sequence[Ints], passes: int, generator: np.random.Generator) -> Ints:
    """Lower b'A b over b in {-1, 1}^n, beginning with ones, by the best bits of a block with all others fixed.

    Args:
        weights: A, whole numbers, symmetric and zero on the diagonal, (n, n); none above 0 within a block, so that a
            graph cut finds the best there is.
        blocks: rows (members,) of each block; every row in at least one.
        passes: number of passes over all blocks, each in another order.
        generator: generator of the orders.

    Returns:
        b, -1 and 1, shape (n,).
    """
    bits = np.ones(weights.shape[0], dtype=np.int64)
    for _ in range(passes):
        for place in generator.permutation(len(blocks)):
            block = blocks[place]
            rows = weights[block]
            inside = rows[:, block]
            bits[block] = cut(inside, rows @ bits - inside @ bits[block])
    return bits


def cut(weights: csr_matrix, pulls: Ints) -> Ints:
    """The b in {-1, 1}^m with the smallest b'A b / 2 + p'b, where no entry of A is above 0.

    Two ends of a pair that differ cost -2 A_ij more than two alike, and a bit of 1 costs 2 p_i more than one of -1: the
    minimum cut of a network with these capacities, halved, where the source's side has the ones.

    Args:
        weights: A, whole numbers, symmetric and zero on the diagonal, (m, m).
        pulls: p, whole numbers, shape (m,).

    Returns:
        b, shape (m,); of several the one with the fewest ones.

    Example:
        >>> cut(csr_matrix([[0, -2], [-2, 0]]), np.array([-3, 1])).tolist()
        [1, 1]
    """
    count = len(pulls)
    source, sink = count, count + 1
    pairs = weights.tocoo()
    pulled, pushed = np.flatnonzero(pulls < 0), np.flatnonzero(pulls > 0)
    starts = np.concatenate([pairs.row, np.full(len(pulled), source), pushed])
    ends = np.concatenate([pairs.col, pulled, np.full(len(pushed), sink)])
    capacities = np.concatenate([-pairs.data, -pulls[pulled], pulls[pushed]]).astype(np.int32)
    network = csr_matrix((capacities, (starts, ends)), shape=(count + 2, count + 2))
    left: Any = network - maximum_flow(network, source, sink).flow
    left.eliminate_zeros()
    reached = breadth_first_order(left, source, return_predecessors=False)
    bits = np.full(count + 2, -1, dtype=np.int64)
    bits[reached] = 1
    return bits[:count]
