"""SRH: hyperplanes regressed on the spectrum of a graph of neighbours, then rotated as ITQ does."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeInt, PositiveInt
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array

from deephash_pipeline.hashing.itq import ITQ
from deephash_pipeline.hashing.linear import feature_mean, hyperplanes_through, project
from deephash_pipeline.hashing.principal_directions import one_direction_per_bit, with_signs_fixed
from deephash_pipeline.hashing.rows import require_different_rows, row_blocks

FEWEST, MANY = 500, 2000
"""Rows below which the graph says less than variance does, and from which it may be trusted: measured."""
KEPT = 128
"""Dimensions of the embedding whose neighbours make the next graph."""


class SRH(ITQ):
    """Spectral regression (Cai, He & Han, ICCV 2007) of a neighbour graph, and ITQ's rotation of what it gives.

    Rows t are centred and scaled to length 1. A graph joins each row to its nearest; W has the cubes of their cosines,
    symmetric and divided by the roots of the degrees. Spectral regression finds the directions along which neighbours
    are alike, t'Wt a = w (t't + r I) a. The rows' projections on them, scaled by w + c, are rotated as in ITQ.

    Neighbours in that embedding are more often of one kind than neighbours by the features. So from 2,000 rows on the
    graph is made again from it, r is .3 of the mean variance, and c is .15. From 500 rows on there is one graph, r is 3
    and c is 1, which stays nearer to the features. Fewer rows get ITQ's own codes.

    Args:
        code_length: number of bits per code, 1 to min(D, n - 1).
        iterations: as of ITQ.
        neighbours: number of neighbours of a row in the first graph; later ones have twice as many.
        rounds: number of times that the graph is made again, from 2,000 rows on.
        random_state: seed of the first rotation.

    Example:
        >>> import numpy as np
        >>> z = np.random.default_rng(0).normal(size=(600, 16))
        >>> SRH(code_length=8).fit(z).transform(z[:2]).shape
        (2, 8)
    """

    display_name = "SRH"
    reference = "Cai, He & Han, Spectral regression for efficient regularized subspace learning, ICCV 2007"
    neighbours: PositiveInt = 10
    rounds: NonNegativeInt = 3

    def _learn(self, z: NDArray[Any], labels: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        if len(z) < FEWEST:
            return super()._learn(z, labels)
        require_different_rows(z, "direction of variance")
        centre = feature_mean(z)
        rows = unit_rows(z - centre)
        ridge, constant, rounds = (0.3, 0.15, self.rounds) if len(z) >= MANY else (3.0, 1.0, 0)
        graph = neighbour_graph(rows, self.neighbours)
        for _ in range(rounds):
            values, vectors = spectral_regression(rows, graph, ridge)
            embedded = unit_rows(project(rows, (vectors * values)[:, :KEPT]))
            graph = neighbour_graph(embedded, 2 * self.neighbours)
        values, vectors = spectral_regression(rows, graph, ridge)
        embedding = vectors * (values + constant)
        embedded = unit_rows(project(rows, embedding))
        origin = np.zeros(embedded.shape[1])
        directions = one_direction_per_bit(embedded, origin, self.code_length)
        rotation, objective = self._learn_rotation(project(embedded, directions))
        return {**hyperplanes_through(centre, embedding @ directions @ rotation), "objective": objective}


def unit_rows(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Rows (n, D) divided by their lengths; a row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def neighbour_graph(rows: NDArray[np.float32], neighbours: int) -> csr_array:
    """W: cubes of cosines of `rows` (n, D), of unit length, with their nearest; symmetric, normalised, (n, n)."""
    from sklearn.neighbors import NearestNeighbors  # noqa: PLC0415 - a fifth of a second, for every command

    # Exact, block by block: memory holds no n x n matrix.
    neighbours = min(neighbours, len(rows) - 1)
    distances, nearest = NearestNeighbors(n_neighbors=neighbours, algorithm="brute").fit(rows).kneighbors()
    weights = np.maximum(1 - distances.astype(np.float64) ** 2 / 2, 0) ** 3
    starts = np.arange(0, weights.size + 1, neighbours)
    graph = csr_array((weights.ravel(), nearest.ravel(), starts), shape=(len(rows), len(rows)))
    graph = (graph + graph.T) / 2
    degrees = graph.sum(axis=1)
    scale = diags_array(1 / np.sqrt(np.where(degrees > 0, degrees, 1)))
    return csr_array(scale @ graph @ scale)


def spectral_regression(
    rows: NDArray[np.float32], graph: csr_array, ridge: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Solve t'Wt a = w (t't + r I) a, r = `ridge` times the mean of t't's diagonal; the largest w first, none below 0.

    Returns:
        w, shape (D,), and a, shape (D, D), one vector a column.
    """
    dimension = rows.shape[1]
    smooth, scatter = np.zeros((dimension, dimension)), np.zeros((dimension, dimension))
    for block in row_blocks(rows, at_least=2048):
        part = rows[block].astype(np.float64)
        smooth += part.T @ (graph[block] @ rows)
        scatter += part.T @ part
    scatter[np.diag_indices(dimension)] += ridge * np.trace(scatter) / dimension
    values, vectors = eigh((smooth + smooth.T) / 2, scatter)
    return np.maximum(values[::-1], 0), with_signs_fixed(vectors[:, ::-1])
