"""Vectors of length 1: an index keeps directions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming.features import FEATURES_AT_ONCE


def unit_rows(vectors: NDArray[Any], name: str, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Vectors of length 1 in the same directions, float32 (n, width).

    Args:
        vectors: float16, float32 or float64 (n, width).
        name: name of the vectors in messages.
        rows: numbers of the rows, int64 (n,).

    Raises:
        InputError: one has no direction, or a number that is not finite; the message has the number of the first.

    Example:
        >>> unit_rows(np.array([[3.0, 4.0]]), "vectors", np.array([0]))
        array([[0.6, 0.8]], dtype=float32)
    """
    unit = np.empty(vectors.shape, dtype=np.float32)
    # With numbers of 16 bits numpy computes slowly, and rounds to them.
    peaks = np.empty(len(vectors), dtype=np.promote_types(vectors.dtype, np.float32))
    for start in range(0, len(vectors), FEATURES_AT_ONCE):
        some = slice(start, start + FEATURES_AT_ONCE)
        exact = vectors[some].astype(peaks.dtype)
        peaks[some] = np.abs(exact).max(axis=1, initial=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            # By the largest number first: squares of large or small ones do not fit.
            scaled = (exact / peaks[some, np.newaxis]).astype(np.float32)
            unit[some] = scaled / np.sqrt(np.square(scaled).sum(axis=1, keepdims=True))
    if np.isfinite(peaks).all() and peaks.all():
        return unit
    for broken, what in ((~np.isfinite(peaks), "a number that is not finite"), (peaks == 0, "zeros alone")):
        if broken.any():
            first, more = rows[broken][0], int(broken.sum()) - 1
            others = f", and {more} rows after it" if more else ""
            raise InputError(f"{name}: row {first} has {what}{others}: mend or drop it")
    return unit
