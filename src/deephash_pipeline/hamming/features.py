"""Real numbers stored with items, for re-ranking: in float16, or rotated, in int8 with a scale for each item."""

from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming.kernels.rotating import rotated
from deephash_pipeline.retrieval.codes import check_count

FeatureType = Literal["float16", "int8"]
SCALE_BYTES = 4
LARGEST_INT8 = 127
LONGEST = 1e18
FEATURES_AT_ONCE = 256
"""What is computed with them stays in the cache of a processor."""


@dataclass(frozen=True)
class FeatureForm:
    """How features are stored: a row of an array for each item.

    Attributes:
        width: numbers in the features of an item, 0 for none.
        kind: ``float16``, or ``int8``: whole numbers from -127 to 127 that have the direction of the features as far as
            they can, and after them a float32 by which they get the length of the features.
        is_rotated: whether they are stored after a rotation; a few large numbers would leave others coarse steps.

    Example:
        >>> form = FeatureForm(2, "int8")
        >>> rows = form.stored(np.array([[3.0, 4.0]], dtype=np.float32))
        >>> rows[0, :2], np.linalg.norm(form.real(rows), axis=1).round(6)
        (array([ 95, 127], dtype=int8), array([5.], dtype=float32))
    """

    width: int
    kind: FeatureType = "float16"
    is_rotated: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the array."""
        return np.dtype("<f2" if self.kind == "float16" else np.int8)

    @property
    def columns(self) -> int:
        """Of the array."""
        return self.width + SCALE_BYTES if self.width and self.kind == "int8" else self.width

    def no_rows(self, count: int = 0) -> NDArray[Any]:
        """An array without numbers, for so many items of an index without features."""
        return np.empty((count, self.columns), dtype=self.dtype)

    def stored(self, real: NDArray[np.float32]) -> NDArray[Any]:
        """Rows of the array, of features float32 (items, width).

        Raises:
            InputError: a number does not fit.
        """
        if self.kind == "float16":
            with np.errstate(over="ignore"):
                rows = real.astype(self.dtype)
            if not np.isfinite(rows).all():
                raise InputError("features has a number beyond 65,504, the largest in 16 bits; scale features down.")
            if (~rows.any(axis=1) & real.any(axis=1)).any():
                raise InputError("features has a row whose numbers are 0 in 16 bits; scale features up.")
            return rows
        rows = np.empty((len(real), self.columns), dtype=self.dtype)
        for start in range(0, len(real), FEATURES_AT_ONCE):
            some = slice(start, start + FEATURES_AT_ONCE)
            # Distances are compared by their squares in float32.
            real_lengths = np.linalg.norm(real[some].astype(np.float64), axis=1)
            if (real_lengths > LONGEST).any() or ((real_lengths > 0) & (real_lengths < 1 / LONGEST)).any():
                raise InputError(
                    f"features has a row that is longer than {LONGEST:g}, or shorter by as much; scale features."
                )
            # In float64 no number is too small to be divided by.
            exact = self.rotated(real[some]).astype(np.float64)
            peaks = np.abs(exact).max(axis=1, keepdims=True)
            whole = np.rint(exact * (LARGEST_INT8 / np.where(peaks, peaks, 1)))
            rows[some, : self.width] = whole
            lengths = np.linalg.norm(whole, axis=1)
            scales = real_lengths / np.where(lengths, lengths, 1)
            rows[some, self.width :] = scales.astype("<f4")[:, np.newaxis].view(np.int8)
        return rows

    def rotated(self, real: NDArray[np.float32]) -> NDArray[np.float32]:
        """Numbers whose distances from stored ones, each by its scale, are those of features."""
        return rotated(real) if self.is_rotated else real

    def real(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Undo `stored`, as far as rounding allows."""
        if self.kind == "float16":
            return rows.astype(np.float32)
        scales = np.ascontiguousarray(rows[:, self.width :]).view("<f4")
        scaled = np.asarray(rows[:, : self.width] * scales, dtype=np.float32)
        return rotated(scaled, back=True) if self.is_rotated else scaled


NO_FEATURES = FeatureForm(0)


def checked_features(features: Any, kind: Any) -> FeatureForm:
    """The form of a new index, once it is known to be right.

    Raises:
        InputError: the width is no whole number, or there is no such type.

    Example:
        >>> checked_features(3, "int8")
        FeatureForm(width=3, kind='int8', is_rotated=True)
    """
    if kind not in get_args(FeatureType):
        raise InputError(f"feature_type is {kind!r}; choose one of {', '.join(get_args(FeatureType))}.")
    return FeatureForm(check_count(features, "features", least=0), cast(FeatureType, kind), kind == "int8")


def checked_numbers(numbers: Any, items: int, width: int, name: str) -> NDArray[np.float32]:
    """Bring real numbers into float32 (items, width).

    Raises:
        InputError: if they have another shape, are no numbers, or not finite.

    Example:
        >>> checked_numbers([[1, 2]], items=1, width=2, name="features")
        array([[1., 2.]], dtype=float32)
    """
    array = np.asarray(numbers)
    if array.dtype.kind not in "fiu" or array.shape != (items, width):
        raise InputError(f"{name} is {array.dtype} of shape {array.shape}; give numbers of shape ({items}, {width}).")
    real = array.astype(np.float32)
    if not np.isfinite(real).all():
        raise InputError(f"{name} has a number that is not finite; remove that item.")
    return real
