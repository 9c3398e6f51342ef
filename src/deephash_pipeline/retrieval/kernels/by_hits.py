"""The expected average precision by hits of the group that the k-th place cuts."""

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.machine_code import compiled

NEGLIGIBLE = 1e-20


@compiled()
def _average_with(x: int, places: int, before: int, hits: int, sum_before: float, reciprocals: float) -> float:
    """Average precision if x relevant items fall into so many places after `before` items, of which `hits` are."""
    if hits + x == 0:
        return 0.0
    growth = (x - 1) / (places - 1) if places > 1 else 0.0
    if_relevant = (hits + 1 - growth * (before + 1)) * reciprocals + growth * places
    return (sum_before + x / places * if_relevant) / (hits + x)


@compiled()
def expect(
    size: NDArray[np.int64],
    relevant: NDArray[np.int64],
    size_before: NDArray[np.int64],
    relevant_before: NDArray[np.int64],
    sums: NDArray[np.float64],
    reciprocals: NDArray[np.float64],
    k: int,
    expected: NDArray[np.float64],
) -> None:
    """Fill `expected`, for the group that is cut in each of some queries."""
    for row in range(len(expected)):
        n, r, before, hits = size[row], relevant[row], size_before[row], relevant_before[row]
        places = k - before
        fewest, most = max(0, places - (n - r)), min(r, places)
        # Probabilities relative to the likeliest x, from which they fall to both sides.
        likeliest = min(max((places + 1) * (r + 1) // (n + 2), fewest), most)
        total, probability = 0.0, 0.0
        p, x = 1.0, likeliest
        while x <= most and p > NEGLIGIBLE:
            total += p * _average_with(x, places, before, hits, sums[row], reciprocals[row])
            probability += p
            p *= (r - x) * (places - x) / ((x + 1) * (n - r - places + x + 1))
            x += 1
        p, x = 1.0, likeliest
        while x > fewest:
            p *= x * (n - r - places + x) / ((r - x + 1) * (places - x + 1))
            x -= 1
            if p <= NEGLIGIBLE:
                break
            total += p * _average_with(x, places, before, hits, sums[row], reciprocals[row])
            probability += p
        expected[row] = total / probability
