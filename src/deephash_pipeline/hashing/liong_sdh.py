"""Supervised deep hashing of Liong et al.: a small tanh network on features, whose last layer is read as a code."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeFloat, PositiveInt
from scipy.optimize import minimize

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing.encoder import doubles, learned
from deephash_pipeline.hashing.hash_function import HashFunction
from deephash_pipeline.hashing.linear import feature_mean, project
from deephash_pipeline.hashing.principal_directions import principal_directions
from deephash_pipeline.hashing.rows import Floats, Ints, row_blocks
from deephash_pipeline.retrieval.codes import MAXIMUM_CODE_LENGTH

Layer = tuple[Floats, Floats]
"""Weights (units below, units) and bias (units,)."""

AUTHORS_HIDDEN_LAYERS = {16: (60, 30), 32: (80, 50), MAXIMUM_CODE_LENGTH: (100, 80)}
"""Longest code -> units of the two hidden layers, as the paper has them at 16, 32 and 64 bits."""


class _Classes(NamedTuple):
    """Labels as 0..C-1 (n,), the number of rows of each class (C,), and of ordered pairs of one class and of two."""

    labels: Ints
    sizes: Ints
    similar_pairs: float
    dissimilar_pairs: float


class LiongSDH(HashFunction):
    """Supervised deep hashing, SDH (Liong, Lu, Wang, Moulin & Zhou, CVPR 2015); "DH-2" in Mu & Liu's tables.

    Three layers h = tanh(W'h + c) on the features given, and a bit is the sign of a unit of the last one. With H (n, K)
    the last layer's outputs and B their signs, it minimises

        1/2 ||B - H||^2  -  n lambda_1 / 2 [ tr(H'H) / n + alpha tr(S_B - S_W) ]
        +  n lambda_2 / 2 sum over layers of ||W'W - I||^2  +  n lambda_3 / 2 sum of (||W||^2 + ||c||^2)

    where S_B and S_W are the mean scatters of differences over pairs of two classes and of one. Both come from class
    means, so that no pair is visited. The factor n makes the weights mean the same for any number of rows; the paper
    leaves it open at lambda_1, and has none at lambda_2 and lambda_3. The first layer starts with principal directions,
    the others with an identity; nothing is drawn at random. Sums run in float32 and round by the number of threads, so
    that codes learned with another number differ in some bits.

    Args:
        code_length: number of bits per code, at most the units of the second hidden layer.
        hidden_layers: units of the two hidden layers; None for the paper's sizes, the second of which is 80 at most.
        spread_weight: lambda_1, of the variance of the units and the scatter of classes.
        scatter_weight: alpha, of the scatter of classes within that.
        orthogonality_weight: lambda_2, of ||W'W - I||^2 of each layer.
        decay: lambda_3, of the squares of weights and biases.
        iterations: iterations of L-BFGS. The paper descends along the gradient, with a step size that it does not
            state.
        random_state: ignored.

    Attributes:
        weights_1_, weights_2_, weights_3_: float32, (D, units), (units, units), (units, code_length).
        bias_1_, bias_2_, bias_3_: float32, one for each unit.
        objective_: float64, shape (2,): at the start and at the end.

    Example:
        >>> import numpy as np
        >>> z = np.random.default_rng(0).normal(size=(100, 8))
        >>> network = LiongSDH(code_length=4, hidden_layers=(8, 6), iterations=10).fit(z, z[:, 0] > 0)
        >>> bool(network.objective_[1] < network.objective_[0])
        True
    """

    display_name = "Liong SDH (DH-2)"
    reference = (
        "Liong, Lu, Wang, Moulin & Zhou, Deep hashing for compact binary codes learning, CVPR 2015, "
        "doi:10.1109/CVPR.2015.7298862"
    )
    supervised = True
    weights_1_: NDArray[np.float32] = learned("features", "first")
    bias_1_: NDArray[np.float32] = learned("first")
    weights_2_: NDArray[np.float32] = learned("first", "second")
    bias_2_: NDArray[np.float32] = learned("second")
    weights_3_: NDArray[np.float32] = learned("second", "code_length")
    bias_3_: NDArray[np.float32] = learned("code_length")
    objective_: NDArray[np.float64] = learned("ends")
    hidden_layers: tuple[PositiveInt, PositiveInt] | None = None
    spread_weight: NonNegativeFloat = 100.0
    scatter_weight: NonNegativeFloat = 1.0
    orthogonality_weight: NonNegativeFloat = 0.001
    decay: NonNegativeFloat = 0.001
    iterations: PositiveInt = 100

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        classes = _classes(labels)
        centre = feature_mean(z)
        layers = self._initial_layers(z, centre)
        # Features of unit variance along the first direction: tanh is then neither linear nor flat.
        scale = float((project(z, layers[0][0]) - centre @ layers[0][0]).std())
        inputs = np.empty(z.shape, dtype=np.float32)
        for rows in row_blocks(z):
            inputs[rows] = (z[rows] - centre) / scale
        start = _flatten(layers)
        shapes = [weights.shape for weights, _ in layers]

        def objective(flat: Floats) -> tuple[float, Floats]:
            value, gradient = self._objective(_unflatten(flat, shapes), inputs, classes)
            return value, _flatten(gradient)

        found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": self.iterations})
        layers = _unflatten(found.x, shapes)
        weights, bias = layers[0]
        layers[0] = (weights / scale, bias - centre @ weights / scale)
        arrays = {"objective": np.array([objective(start)[0], found.fun])}
        for place, (weights, bias) in enumerate(layers, 1):
            arrays |= {f"weights_{place}": weights, f"bias_{place}": bias}
        return arrays

    def _initial_layers(self, z: NDArray[Any], centre: Floats) -> list[Layer]:
        hidden = self.hidden_layers or next(
            units for longest, units in AUTHORS_HIDDEN_LAYERS.items() if self.code_length <= longest
        )
        directions = principal_directions(z, centre, hidden[0])
        second = min(hidden[1], directions.shape[1])
        if self.code_length > second:
            raise InputError(
                f"code_length is {self.code_length}, but the second hidden layer has {second} units, at most as "
                "many as the first and as X has directions of variance: shorten the code, or enlarge hidden_layers"
            )
        weights = [directions, np.eye(directions.shape[1], second), np.eye(second, self.code_length)]
        return [(layer, np.zeros(layer.shape[1])) for layer in weights]

    def _objective(
        self, layers: list[Layer], inputs: NDArray[np.float32], classes: _Classes
    ) -> tuple[float, list[Layer]]:
        """Value and gradient: errors go back through the layers by hand."""
        rows = len(inputs)
        activations = [inputs]
        for weights, bias in layers:
            activations.append(np.tanh(activations[-1] @ weights.astype(np.float32) + bias.astype(np.float32)))
        outputs = activations[-1]
        spread, error = _spread(outputs, classes, self.scatter_weight)
        to_signs = outputs - np.where(outputs >= 0, np.float32(1), np.float32(-1))
        value = (0.5 * float(np.vdot(to_signs, to_signs)) / rows) - 0.5 * self.spread_weight * spread
        error = to_signs / np.float32(rows) - np.float32(0.5 * self.spread_weight) * error
        gradient: list[Layer] = []
        for (weights, bias), below, above in zip(layers[::-1], activations[-2::-1], activations[:0:-1], strict=True):
            error = error * (1 - above * above)
            not_orthogonal = weights.T @ weights - np.eye(weights.shape[1])
            value += 0.5 * self.orthogonality_weight * float(np.vdot(not_orthogonal, not_orthogonal))
            value += 0.5 * self.decay * float(np.vdot(weights, weights) + np.vdot(bias, bias))
            slope = 2 * self.orthogonality_weight * (weights @ not_orthogonal) + self.decay * weights
            gradient.append((below.T @ error + slope, error.sum(axis=0) + self.decay * bias))
            error = error @ weights.T.astype(np.float32)
        return value, gradient[::-1]

    def _outputs(self, z: Any, xp: Any = np) -> Any:
        weights = doubles(xp, self.weights_1_, self.weights_2_, self.weights_3_)
        first, second, third = zip(weights, doubles(xp, self.bias_1_, self.bias_2_, self.bias_3_), strict=True)
        hidden = xp.tanh(xp.tanh(z @ first[0] + first[1]) @ second[0] + second[1])
        return hidden @ third[0] + third[1]


def _classes(labels: Ints) -> _Classes:
    sizes = np.bincount(labels)
    similar = float(np.sum(sizes.astype(np.float64) ** 2))
    return _Classes(labels, sizes, similar, float(len(labels)) ** 2 - similar)


def _spread(
    outputs: NDArray[np.float32], classes: _Classes, scatter_weight: float
) -> tuple[float, NDArray[np.float32]]:
    """tr(H'H) / n + alpha tr(S_B - S_W) and its gradient with respect to H.

    The squared differences over all ordered pairs of a set of m rows sum to 2 m times their squared distances from the
    mean; so those over pairs of one class, and of two as what is left of all.
    """
    rows = len(outputs)
    mean = outputs.mean(axis=0, dtype=np.float64).astype(np.float32)
    sums = np.zeros((len(classes.sizes), outputs.shape[1]))
    np.add.at(sums, classes.labels, outputs)
    off_class = outputs - (sums / classes.sizes[:, None]).astype(np.float32)[classes.labels]
    off_mean = outputs - mean
    weights = classes.sizes[classes.labels][:, None].astype(np.float32)
    within = 2 * float(np.sum(weights * off_class**2, dtype=np.float64))
    between = 2 * rows * float(np.sum(off_mean**2, dtype=np.float64)) - within
    value = float(np.vdot(outputs, outputs)) / rows
    value += scatter_weight * (between / classes.dissimilar_pairs - within / classes.similar_pairs)
    of_within = 4 * weights * off_class
    of_between = np.float32(4 * rows) * off_mean - of_within
    gradient = outputs * np.float32(2 / rows) + np.float32(scatter_weight) * (
        of_between / np.float32(classes.dissimilar_pairs) - of_within / np.float32(classes.similar_pairs)
    )
    return value, gradient


def _flatten(layers: list[Layer]) -> Floats:
    return np.concatenate([part.ravel() for layer in layers for part in layer]).astype(np.float64)


def _unflatten(flat: Floats, shapes: list[tuple[int, int]]) -> list[Layer]:
    sizes = [size for rows, columns in shapes for size in (rows * columns, columns)]
    parts = np.split(flat, np.cumsum(sizes)[:-1])
    layers = zip(parts[::2], parts[1::2], shapes, strict=True)
    return [(weights.reshape(shape), bias) for weights, bias, shape in layers]
