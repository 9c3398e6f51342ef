"""Rows of features: read a block at a time, and refused where they are not finite or do not differ."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError

# Arrays of whose shapes docstrings tell.
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

# 4 MiB of float64, so that a block and its projections stay near the processor however many rows there are.
VALUES_PER_BLOCK = 2**19


LARGEST_NUMBER = 1e30
"""Of a number: its fourth power has room in float64, and the number in the float32 of anchors and directions."""


def row_blocks(z: NDArray[Any], at_least: int = 1) -> Iterator[slice]:
    """Consecutive slices over the rows of `z` (n, D), of `VALUES_PER_BLOCK` values or `at_least` rows each.

    Example:
        >>> import numpy as np
        >>> [len(range(5)[rows]) for rows in row_blocks(np.zeros((5, 2)))]
        [5]
    """
    rows_per_block = max(at_least, VALUES_PER_BLOCK // z.shape[1])
    for start in range(0, z.shape[0], rows_per_block):
        yield slice(start, start + rows_per_block)


def require_different_rows(z: NDArray[Any], otherwise: str) -> None:
    """Refuse with an InputError a `z` (n, D) all of whose rows are equal, and so have no `otherwise`."""
    if all(bool((z[rows] == z[0]).all()) for rows in row_blocks(z)):
        raise InputError(f"X has only equal rows, so no {otherwise}: check the network that gave these features")


def count_broken(z: NDArray[Any]) -> int:
    """Count the rows of `z` (n, D) with values that are not finite."""
    return int((~np.isfinite(z)).any(axis=1).sum())


def refuse_broken(broken: int, rows: int) -> None:
    """Refuse features with an InputError if `broken` of their `rows` have values that are not finite."""
    if broken:
        raise InputError(f"X contains NaN or infinity in {broken} of {rows} rows: drop or recompute these rows")


def peak_of(z: NDArray[Any]) -> float:
    """The largest absolute number of some rows (n, D), without those that are not finite."""
    return float(np.abs(z).max(initial=0, where=np.isfinite(z)))


def refuse_large(peak: float) -> None:
    """Refuse features with an InputError whose largest absolute number is too large to compute with.

    Example:
        >>> refuse_large(7.0)
    """
    if peak > LARGEST_NUMBER:
        raise InputError(f"X has numbers up to {peak:.0e}, and squares of them no room: divide it by its largest")


def refuse_extreme(z: NDArray[Any]) -> None:
    """Refuse rows (n, D) that are too large, or differ by too little, with an InputError.

    Example:
        >>> refuse_extreme(np.array([[1e-40], [2e-40]]))
        Traceback (most recent call last):
        deephash_pipeline.common.errors.InputError: X differs by 1e-40 at most, whose squares vanish: scale it up
    """
    refuse_large(max(peak_of(z[rows]) for rows in row_blocks(z)))
    first = z[0].astype(np.float64)
    apart = max(peak_of(z[rows] - first) for rows in row_blocks(z))
    if 0 < apart < 1 / LARGEST_NUMBER:
        raise InputError(f"X differs by {apart:.0e} at most, whose squares vanish: scale it up")
