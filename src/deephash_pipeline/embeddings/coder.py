"""Vectors of length 1 -> codes: a hash function as it is applied, which most times is one product of matrices."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.embeddings.kernels import settle

if TYPE_CHECKING:
    from deephash_pipeline.hashing import Encoder

LINEAR = {"projection", "threshold"}
"""Arrays of hash functions whose bit is 1 where a projection reaches a threshold."""
FLOAT32_STEP = float(np.finfo(np.float32).eps)
ROWS_CODED_AT_ONCE = 4096


class Coder:
    """What makes the codes of an index.

    A linear hash function is applied by a product in float32; bits that its rounding may have turned are computed again
    in float64. So they are the bits of `Encoder.transform`, and scikit-learn is not imported.

    Args:
        method: key of the hash function.
        code_length: bits per code.
        arrays: arrays of the hash function, see `Encoder.arrays`.

    Raises:
        InputError: the arrays are not those of this method.

    Example:
        >>> coder = Coder("lsh", 2, {"projection": np.eye(2, dtype=np.float32), "threshold": np.array([0.5, 0.0])})
        >>> coder.codes(np.array([[0.6, 0.8], [0.0, -1.0]], dtype=np.float32)).tolist()
        [[192], [0]]
    """

    def __init__(self, method: str, code_length: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.method, self.code_length, self._arrays = method, code_length, arrays
        self._is_linear = set(arrays) == LINEAR
        if not self._is_linear:
            self.width = self.encoder.n_features_in_
            return
        self._projection = np.require(arrays["projection"], np.float32, ["C", "W"])
        self._threshold = np.require(arrays["threshold"], np.float64, ["C", "W"])
        if self._projection.ndim != 2 or {self._projection.shape[1:], self._threshold.shape} != {(code_length,)}:
            raise InputError(f"the arrays of {method} are not of {code_length} bits: fit it again")
        if not (np.isfinite(self._projection).all() and np.isfinite(self._threshold).all()):
            raise InputError(f"an array of {method} contains NaN or infinity: fit it again")
        self.width = len(self._projection)
        # Of a sum of so many products, of vectors of length 1; and of the threshold.
        lengths = np.linalg.norm(self._projection.astype(np.float64), axis=0)
        most = FLOAT32_STEP * (self.width * lengths + np.abs(self._threshold))
        self._unsure = float(most.max(initial=0))

    @cached_property
    def encoder(self) -> "Encoder":
        """The hash function of `hashing`."""
        from deephash_pipeline.hashing import load_encoder  # noqa: PLC0415 - scikit-learn takes seconds

        return load_encoder(self.method, self.code_length, self._arrays)

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Everything learned, by name."""
        return self._arrays

    def outputs(self, unit: NDArray[np.float32]) -> NDArray[np.float32]:
        """The real numbers whose signs are the bits, float32 (n, code_length), of vectors float32 (n, width)."""
        if not self._is_linear:
            return self.encoder.outputs(unit).astype(np.float32)
        outputs: NDArray[np.float32] = unit @ self._projection
        settle(outputs, unit, self._projection, self._threshold, self._unsure)
        return outputs

    def codes(self, unit: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Packed codes, uint8 (n, ceil(code_length / 8)), of vectors float32 (n, width)."""
        packed = np.empty((len(unit), -(-self.code_length // 8)), dtype=np.uint8)
        for start in range(0, len(unit), ROWS_CODED_AT_ONCE):
            some = slice(start, start + ROWS_CODED_AT_ONCE)
            packed[some] = np.packbits(self.outputs(unit[some]) >= 0, axis=1)
        return packed
