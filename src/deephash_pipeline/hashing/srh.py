"""SRH: hyperplanes regressed on the spectrum of a graph of neighbours, then rotated as ITQ does."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array

from deephash_pipeline.hashing.itq import ITQ
from deephash_pipeline.hashing.linear import feature_mean, hyperplanes_through, project
from deephash_pipeline.hashing.principal_directions import (
    COVARIANCE_ROWS,
    one_direction_per_bit,
    scatter,
    with_signs_fixed,
)
from deephash_pipeline.hashing.rows import Floats, Ints, require_different_rows, row_blocks

LEAST_ROWS_UNLABELLED = 500
"""Rows below which a graph without labels says less than variance does: measured."""
EMBEDDING_DIMENSIONS = 128
"""Dimensions of the embedding whose neighbours make the next graph."""
NEAR_ROWS, FAR_ROWS = (1000, 400), (8000, 2000)
"""The ridge and the constant, times the number of rows: for rows like those of the fit, and for others."""
DIFFUSION_STEPS = 8
"""Of the walk along the graph whose distances count besides; of 2, 4, 8 and 16 the best, measured."""


class SRH(ITQ):
    """Spectral regression (Cai, He & Han, ICCV 2007) of a neighbour graph, and ITQ's rotation of what it gives.

    Rows t are centred and scaled to length 1. A graph joins each row to its nearest; W has the cubes of their cosines,
    symmetric and divided by the roots of the degrees. Spectral regression finds the directions along which neighbours
    are alike, t'Wt a = w (t't + r I) a. The rows are projected on them, scaled by w + c. Neighbours in that embedding
    are more often of one kind than neighbours by the features, so the graph is made again from it.

    A ridge r of 1,000 rows of mean variance serves rows like those of the fit, one of 8,000 rows serves others. The
    mean of both metrics is embedded (of the first alone with labels), and ITQ's rotation takes K bits from its 2 K
    leading directions. Fewer than 500 rows without labels get ITQ's own codes.

    Neighbours say which rows are of one small class, and little of what is like what among them. `diffusion` adds
    the distances after 8 steps along the graph, |w^8 a't| (Coifman & Lafon, Applied and Computational Harmonic Analysis
    2006): classes whose graphs hang together come nearer to each other.

    Args:
        code_length: number of bits per code, 1 to min(D, n - 1).
        iterations: number of steps of ITQ.
        neighbours: number of neighbours of a row in the first graph; later ones have twice as many.
        rounds: number of times that the graph is made again.
        supervised: True to join all rows of a class too, and no two of different classes; class -1 is of rows without
            one.
        diffusion: weight of these distances; 1 for as much as each of the other metrics.
        random_state: seed of the first rotation.

    Example:
        >>> import numpy as np
        >>> z = np.random.default_rng(0).normal(size=(600, 16))
        >>> SRH(code_length=8).fit(z).transform(z[:2]).shape
        (2, 8)
    """

    display_name = "SRH"
    reference = (
        "Cai, He & Han, Spectral regression for efficient regularized subspace learning, ICCV 2007, "
        "doi:10.1109/ICCV.2007.4408855"
    )
    neighbours: PositiveInt = 10
    rounds: NonNegativeInt = 3
    supervised: bool = False
    diffusion: NonNegativeFloat = 0

    def _validated_training_set(self, X: Any, y: Any) -> tuple[NDArray[Any], Ints]:
        z, labels = super()._validated_training_set(X, y)
        if len(labels) and (unlabelled := np.ravel(y) == -1).any():
            # Classes above -1 close the gap that it leaves; there may be some below.
            labels = np.where(unlabelled, -1, labels - (labels > labels[unlabelled][0]))
        return z, labels

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        if not len(labels):
            if len(z) < LEAST_ROWS_UNLABELLED:
                return super()._learn(z, labels)
            labels = np.full(len(z), -1)
        require_different_rows(z, "direction of variance")
        centre = feature_mean(z)
        rows = np.concatenate([unit_length_rows(z[block] - centre) for block in row_blocks(z)])
        moment = scatter(rows, np.zeros(rows.shape[1]))
        smooth = neighbour_graph(rows, self.neighbours, labels).smoothness(rows)
        for _ in range(self.rounds):
            values, vectors = spectral_regression(smooth, moment, NEAR_ROWS[0] / len(rows))
            embedded = embed(rows, (vectors * values)[:, :EMBEDDING_DIMENSIONS])
            smooth = neighbour_graph(embedded, 2 * self.neighbours, labels).smoothness(rows)
        lengths, axes = eigh(self._metric(smooth, moment, len(rows)))
        embedding = with_signs_fixed(axes * np.sqrt(np.maximum(lengths, 0)))
        embedded = embed(rows, embedding)
        origin = np.zeros(embedded.shape[1])
        directions = one_direction_per_bit(embedded, origin, self.code_length, at_most=2 * self.code_length)
        rotation, objective = self._learn_rotation(project(embedded, directions))
        return {**hyperplanes_through(centre, embedding @ directions @ rotation), "objective": objective}

    def _metric(self, smooth: Floats, moment: Floats, rows: int) -> Floats:
        """Sum of the metrics, (D, D), each divided by the mean square of its distances."""
        embeddings = []
        for ridge, constant in (NEAR_ROWS,) if self.supervised else (NEAR_ROWS, FAR_ROWS):
            values, vectors = spectral_regression(smooth, moment, ridge / rows)
            embeddings.append((1.0, vectors * (values + constant / rows)))
        if self.diffusion:
            values, vectors = spectral_regression(smooth, moment, NEAR_ROWS[0] / rows)
            embeddings.append((self.diffusion, vectors * values**DIFFUSION_STEPS))
        metric = np.zeros_like(moment)
        for weight, embedding in embeddings:
            metric += weight * embedding @ embedding.T / np.vdot(embedding, moment @ embedding)
        return metric


class Graph(NamedTuple):
    """W = neighbours + members . members', (n, n): without a block of n_c x n_c for each class."""

    neighbours: csr_array
    members: csr_array

    def smoothness(self, rows: NDArray[np.float32]) -> Floats:
        """Compute t'Wt of rows t (n, D), shape (D, D)."""
        of_classes = (self.members.T @ rows).astype(np.float64)
        total: Floats = of_classes.T @ of_classes
        for block in row_blocks(rows, at_least=COVARIANCE_ROWS):
            total += rows[block].astype(np.float64).T @ (self.neighbours[block] @ rows)
        return (total + total.T) / 2


def unit_length_rows(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Rows (n, D) divided by their lengths; a row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def embed(rows: NDArray[np.float32], embedding: Floats) -> NDArray[np.float32]:
    """Rows (n, D) times an embedding (D, m), divided by their lengths."""
    return np.concatenate([unit_length_rows(rows[block] @ embedding) for block in row_blocks(rows)])


def neighbour_graph(rows: NDArray[np.float32], neighbours: int, labels: Ints) -> Graph:
    """Join `rows` (n, D), of unit length, to their nearest by the cubes of cosines, and to all of their class.

    A row's edges to its class weigh as much in all as those of a mean row to its neighbours. Neighbours of another
    class are left out. Class -1 is of rows without one.
    """
    from sklearn.neighbors import NearestNeighbors  # noqa: PLC0415 - a fifth of a second, for every command

    # Exact, block by block: memory holds no n x n matrix.
    neighbours = min(neighbours, len(rows) - 1)
    distances, nearest = NearestNeighbors(n_neighbors=neighbours, algorithm="brute").fit(rows).kneighbors()
    weights = np.maximum(1 - distances.astype(np.float64) ** 2 / 2, 0) ** 3
    own, others = labels[:, np.newaxis], labels[nearest]
    weights[(own != others) & (own >= 0) & (others >= 0)] = 0
    starts = np.arange(0, weights.size + 1, neighbours)
    graph = csr_array((weights.ravel(), nearest.ravel(), starts), shape=(len(rows), len(rows)))
    graph = (graph + graph.T) / 2
    known = np.flatnonzero(labels >= 0)
    sizes = np.bincount(labels[known], minlength=1)
    shares = np.sqrt(graph.sum() / len(rows) / sizes[labels[known]])
    members = csr_array((shares, (known, labels[known])), shape=(len(rows), len(sizes)))
    degrees = graph.sum(axis=1) + members @ members.sum(axis=0)
    scale = diags_array(1 / np.sqrt(np.where(degrees > 0, degrees, 1)))
    return Graph(csr_array(scale @ graph @ scale), csr_array(scale @ members))


def spectral_regression(smooth: Floats, scatter: Floats, ridge: float) -> tuple[Floats, Floats]:
    """Solve t'Wt a = w (t't + r I) a, r = `ridge` times the mean of t't's diagonal; the largest w first, none below 0.

    Returns:
        w, shape (D,), and a, shape (D, D), one vector a column.
    """
    values, vectors = eigh(smooth, scatter + ridge * np.trace(scatter) / len(scatter) * np.eye(len(scatter)))
    return np.maximum(values[::-1], 0), with_signs_fixed(vectors[:, ::-1])
