"""AGH: bits from the smoothest functions on a graph that a few anchors make cheap."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing.anchors import distances_to_anchors, rounded_anchors
from deephash_pipeline.hashing.encoder import learned
from deephash_pipeline.hashing.hash_function import HashFunction
from deephash_pipeline.hashing.linear import feature_mean
from deephash_pipeline.hashing.principal_directions import with_signs_fixed
from deephash_pipeline.hashing.rows import Floats, Ints, row_blocks

# Eigenvalues above it belong to functions that are constant on each part of the graph, and say nothing within one.
LARGEST_EIGENVALUE = 1 - 1e-3


class AGH(HashFunction):
    """Anchor graph hashing (Liu, Wang, Kumar & Chang, ICML 2011).

    Spectral hashing asks for balanced, uncorrelated functions that change least along the edges of a neighbourhood
    graph: eigenvectors of its Laplacian. Here the graph goes by way of m anchors: Z (n, m) holds, for each row, weights
    exp(-||x - anchor||^2 / sigma^2) of its s nearest anchors, scaled to sum to 1, and the graph is Z Lambda^-1 Z' with
    Lambda = diag(Z'1). Its eigenvectors come from the m x m matrix M = Lambda^-1/2 Z'Z Lambda^-1/2, and from M's
    (V, Sigma) also the function of any new x: y = z(x) W, W = sqrt(n) Lambda^-1/2 V Sigma^-1/2.

    With one layer a bit is the sign of y, the K smoothest of them. With two layers only the K/2 smoothest are used,
    each twice: its sign, and on either side of zero a second threshold, y >= b+ or y <= b-; the pair is chosen that is
    balanced and smoothest on the graph.

    Args:
        code_length: number of bits per code, at most `layers` times the number of eigenvectors, anchors - 1.
        anchors: m, centres of k-means.
        nearest: s, anchors that a row is described by.
        layers: 1 or 2, bits of an eigenvector.
        random_state: seed of k-means.

    Attributes:
        anchors_: float32, shape (anchors, D).
        bandwidth_: float64, shape (nearest,), mean distances of a row to its nearest anchors; the last is sigma.
        projection_: float64, shape (anchors, vectors), W.
        positive_: float64, shape (seconds,), b+ of each second bit.
        negative_: float64, shape (seconds,), b- of each second bit.

    Example:
        >>> import numpy as np
        >>> z = np.random.default_rng(0).normal(size=(200, 4)) + 9 * np.eye(4)[np.arange(200) % 4]
        >>> AGH(code_length=4, anchors=20).fit(z).transform(z[:2]).shape
        (2, 4)
    """

    display_name = "AGH"
    reference = "Liu, Wang, Kumar & Chang, Hashing with graphs, ICML 2011"
    anchors_: NDArray[np.float32] = learned("anchors", "features")
    bandwidth_: NDArray[np.float64] = learned("nearest")
    projection_: NDArray[np.float64] = learned("anchors", "vectors")
    positive_: NDArray[np.float64] = learned("seconds")
    negative_: NDArray[np.float64] = learned("seconds")
    anchors: Annotated[int, Field(ge=2)] = 300
    nearest: PositiveInt = 3
    layers: Literal[1, 2] = 2

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        anchors = self._cluster(z)
        nearest = min(self.nearest, len(anchors))
        near = [np.sort(distances_to_anchors(z[rows], anchors))[:, :nearest] for rows in row_blocks(z)]
        bandwidth = np.sqrt(np.concatenate(near)).mean(axis=0)
        weights = np.concatenate([anchor_weights(z[rows], anchors, bandwidth) for rows in row_blocks(z)])
        # Anchors that no row is near to are off the graph.
        used = weights.any(axis=0)
        anchors, weights, bandwidth = anchors[used], weights[:, used], bandwidth[: used.sum()]
        first = -(-self.code_length // self.layers)
        projection = smoothest_functions(weights, first)
        if projection.shape[1] < first:
            raise InputError(
                f"code_length is {self.code_length}, but X of shape {z.shape} with {len(anchors)} anchors gives "
                f"{projection.shape[1]} eigenvectors of {self.layers} bits: raise anchors, or shorten the code"
            )
        seconds = [second_thresholds(y, weights) for y in (weights @ projection).T[: self.code_length - first]]
        positive, negative = np.array(seconds).reshape(-1, 2).T
        first_layer = {"anchors": anchors, "bandwidth": bandwidth, "projection": projection}
        return {**first_layer, "positive": positive, "negative": negative}

    def _cluster(self, z: NDArray[Any]) -> NDArray[np.float32]:
        count = min(self.anchors, len(np.unique(z[: 10 * self.anchors], axis=0)))
        from sklearn.cluster import MiniBatchKMeans  # noqa: PLC0415 - a fifth of a second, for every command

        means = MiniBatchKMeans(count, init="random", n_init=1, max_iter=10, random_state=self.short_seed)
        # In single precision: what is far from 0, or very small, is not told apart there.
        centre = feature_mean(z)
        _, exponent = np.frexp(max(np.abs(z[rows] - centre).max() for rows in row_blocks(z)))
        near = np.concatenate([np.ldexp(z[rows] - centre, -exponent).astype(np.float32) for rows in row_blocks(z)])
        means.fit(near)
        return np.unique(rounded_anchors(np.ldexp(means.cluster_centers_.astype(float), exponent) + centre), axis=0)

    def _set_arrays(self, arrays: Mapping[str, Any]) -> None:
        super()._set_arrays(arrays)
        first, seconds = self.projection_.shape[1], len(self.positive_)
        if first + seconds != self.code_length or seconds > first:
            raise InputError(
                f"arrays of AGH make {first} first and {seconds} second bits, not a code of {self.code_length}: "
                "fit the encoder again"
            )

    def _outputs(self, z: Any, xp: Any = np) -> Any:
        weights = anchor_weights(z, self.anchors_, self.bandwidth_)
        functions = weights @ self.projection_
        seconds = functions[:, : len(self.positive_)]
        split = np.where(seconds >= 0, seconds - self.positive_, -seconds + self.negative_)
        return np.hstack([functions, split])


def anchor_weights(z: NDArray[Any], anchors: NDArray[np.float32], bandwidth: Floats) -> Floats:
    """Z: weights of the nearest anchors of each row of `z` (n, D), summing to 1, zero elsewhere, shape (n, m).

    Args:
        z: features, shape (n, D).
        anchors: shape (m, D).
        bandwidth: distances, as many as there are anchors to a row, shape (s,); the last is sigma.
    """
    nearest = len(bandwidth)
    distances: Floats = distances_to_anchors(z, anchors)
    # In single precision anchors equally far stay so in any batch, on whose size the last digit of sums depends.
    compared = (distances / (distances.max(axis=1, keepdims=True) + np.finfo(float).tiny)).astype(np.float32)
    chosen = np.argpartition(compared, nearest - 1, axis=1)[:, :nearest]
    near = np.take_along_axis(distances, chosen, axis=1)
    # Less the nearest, so that a row far from all anchors has weights too; where all rows are anchors, sigma is zero.
    kernels = np.exp(-(near - near.min(axis=1, keepdims=True)) / (bandwidth[-1] ** 2 or 1.0))
    weights = np.zeros_like(distances)
    np.put_along_axis(weights, chosen, kernels / kernels.sum(axis=1, keepdims=True), axis=1)
    return weights


def smoothest_functions(weights: Floats, at_most: int) -> Floats:
    """W: what maps a row's weights to the eigenvectors of the anchor graph, without those constant on its parts.

    Args:
        weights: Z, shape (n, m), no column zero.
        at_most: the number of functions wanted.

    Returns:
        float64, shape (m, k), k at most `at_most`; each function has length sqrt(n) on the rows, and each column's
        largest component is positive.
    """
    degrees = weights.sum(axis=0)
    scaled = weights / np.sqrt(degrees)
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    kept = np.flatnonzero((values < LARGEST_EIGENVALUE) & (values > 1e-9))[::-1][:at_most]
    vectors = with_signs_fixed(vectors[:, kept])
    return np.asarray(np.sqrt(len(weights)) * vectors / np.sqrt(degrees)[:, np.newaxis] / np.sqrt(values[kept]))


def second_thresholds(y: Floats, weights: Floats) -> tuple[float, float]:
    """b+ and b- of the second layer: z = y - b+ where y >= 0 and -y + b- elsewhere sums to zero and is smoothest.

    Smooth is a small z' (I - Z Lambda^-1 Z') z, a quadratic function of b-, as b+ follows from the sum.

    Args:
        y: a function on the rows, with values on both sides of zero, shape (n,).
        weights: Z, shape (n, m).

    Returns:
        b+ and b-.
    """
    above = y >= 0
    scaled = weights / np.sqrt(weights.sum(axis=0))

    def roughness(left: Floats, right: Floats) -> float:
        return float(left @ right - (scaled.T @ left) @ (scaled.T @ right))

    # z = |y| - b+ [y >= 0] + b- [y < 0]; where it sums to zero, b+ = (sum |y| + b- n-) / n+.
    positive, negative = above.astype(np.float64), (~above).astype(np.float64)
    total, ahead, below = np.abs(y).sum(), positive.sum(), negative.sum()
    fixed = np.abs(y) - total / ahead * positive
    moved = negative - below / ahead * positive
    curvature = roughness(moved, moved)
    lower = -roughness(fixed, moved) / curvature if curvature > 1e-12 else -total / len(y)
    return float((total + lower * below) / ahead), lower
