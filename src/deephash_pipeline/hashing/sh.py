"""Spectral hashing: the signs of standing waves along the principal directions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing.encoder import doubles, learned
from deephash_pipeline.hashing.hash_function import HashFunction
from deephash_pipeline.hashing.linear import feature_mean, project
from deephash_pipeline.hashing.principal_directions import principal_directions
from deephash_pipeline.hashing.rows import Floats, Ints


class SpectralHashing(HashFunction):
    """Spectral hashing (Weiss, Torralba & Fergus, NIPS 2008).

    The best balanced, uncorrelated bits that give neighbours equal values are thresholded eigenvectors of a graph's
    Laplacian. For points spread uniformly in a box, the box's axes taken as the principal directions, these tend to
    eigenfunctions known in closed form: cos(omega (v - a)) along one axis, omega = m pi / range for modes m = 1, 2,
    ..., with eigenvalues that grow with omega. A bit is the sign of one such wave, the `code_length` slowest of all
    axes and modes; a long axis gives several bits before a short one gives any, so that codes may be longer than D.
    Beyond the range seen in `fit` the waves simply continue. Draws nothing at random.

    Attributes:
        directions_: float32, shape (D, axes), axes = min(code_length, rank of the centred features).
        origin_: float64, shape (axes,), the least projection a of the training set on each axis.
        axis_: int64, shape (code_length,), the axis that each bit's wave runs along.
        frequency_: float64, shape (code_length,), omega in radians per unit of projection, ascending.

    Example:
        >>> waves = SpectralHashing(code_length=2).fit([[0], [1], [2], [3], [4]])
        >>> waves.transform([[0], [1.5], [2.5], [4]]).astype(int)
        array([[1, 1],
               [1, 0],
               [0, 0],
               [0, 1]])
    """

    display_name = "SH"
    reference = "Weiss, Torralba & Fergus, Spectral hashing, NIPS 2008"
    directions_: NDArray[np.float32] = learned("features", "axes")
    origin_: NDArray[np.float64] = learned("axes")
    axis_: NDArray[np.int64] = learned("code_length")
    frequency_: NDArray[np.float64] = learned("code_length")

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        directions = principal_directions(z, feature_mean(z), self.code_length).astype(np.float32)
        projected = project(z, directions.astype(np.float64))
        origin = projected.min(axis=0)
        axis, frequency = self._choose_modes(projected.max(axis=0) - origin)
        return {"directions": directions, "origin": origin, "axis": axis, "frequency": frequency}

    def _choose_modes(self, ranges: Floats) -> tuple[Ints, Floats]:
        """Axes (K,) and frequencies (K,) of the K slowest waves, given the ranges (axes,) of the projections."""
        # The longest axis alone has K modes; no mode of a shorter one above its share of K can be among the K slowest.
        modes_per_axis = np.ceil((self.code_length + 1) * ranges / ranges.max()).astype(np.int64) - 1
        axis = np.repeat(np.arange(len(ranges), dtype=np.int64), modes_per_axis)
        mode = np.concatenate([np.arange(1, modes + 1) for modes in modes_per_axis])
        frequency = mode * np.pi / ranges[axis]
        slowest = np.argsort(frequency, kind="stable")[: self.code_length]
        return axis[slowest], frequency[slowest]

    def _set_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._set_arrays(arrays)
        if self.axis_.min() < 0 or self.axis_.max() >= len(self.origin_):
            raise InputError(f"array axis names an axis outside 0..{len(self.origin_) - 1}: fit the encoder again")

    def _outputs(self, z: Any, xp: Any = np) -> Any:
        directions, origin, frequency = doubles(xp, self.directions_, self.origin_, self.frequency_)
        return xp.cos((z @ directions - origin)[:, xp.asarray(self.axis_)] * frequency)
