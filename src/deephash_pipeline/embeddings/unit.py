"""Vectors of length 1: an index keeps directions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.embeddings.kernels import scale_to_1
from deephash_pipeline.hamming.features import FEATURES_AT_ONCE


def unit_rows(vectors: NDArray[Any], name: str, rows: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
    """Vectors of length 1 in the same directions, float32 (n, width).

    Args:
        vectors: float16, float32 or float64 (n, width).
        name: name of the vectors in messages.
        rows: numbers of the rows, int64 (n,); from 0 on by default.

    Raises:
        InputError: one has no direction, or a number that is not finite; the message has the number of the first.

    Example:
        >>> unit_rows(np.array([[3.0, 4.0]]), "vectors")
        array([[0.6, 0.8]], dtype=float32)
    """
    unit = np.empty(vectors.shape, dtype=np.float32)
    # Numbers of 16 bits are none that kernels know.
    known = np.float64 if vectors.dtype.itemsize == np.dtype(np.float64).itemsize else np.float32
    all_have = True
    for start in range(0, len(vectors), FEATURES_AT_ONCE):
        some = slice(start, start + FEATURES_AT_ONCE)
        # A copy: kernels are compiled for arrays of one order that can be written.
        all_have &= scale_to_1(np.array(vectors[some], dtype=known, order="C"), unit[some])
    if all_have:
        return unit
    broken, what = ~np.isfinite(vectors).all(axis=1), "a number that is not finite"
    if not broken.any():
        broken, what = ~vectors.any(axis=1), "zeros alone"
    wrong = np.flatnonzero(broken)
    first, more = wrong[0] if rows is None else rows[wrong[0]], len(wrong) - 1
    others = f", and {more} rows after it" if more else ""
    raise InputError(f"{name}: row {first} has {what}{others}: mend or drop it")
