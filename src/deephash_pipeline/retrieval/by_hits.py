"""mAP@k in the field's convention: average precision divided by the hits among the first k.

Most published code divides so; a query that finds few of many relevant items is rewarded. It is here for comparison
with such values, under a name of its own; `average_precision_at` divides by min(R, k).
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from deephash_pipeline.retrieval.groups import RelevantGroups
from deephash_pipeline.retrieval.harmonic import harmonic_difference
from deephash_pipeline.retrieval.histograms import DistanceHistograms
from deephash_pipeline.retrieval.ranks import check_rank, mean_of_evaluated

NEGLIGIBLE = 1e-20


def average_precision_at_by_hits(histograms: DistanceHistograms, k: int) -> NDArray[np.float64]:
    """Average precision of the first k items, divided by the relevant ones among them, the mean over orders of ties.

    Only one group, the one that the k-th place cuts, has as many hits as chance gives: x of its r relevant items with
    hypergeometric probability, in c = k - N' places. So the expectation is a finite sum over x, of the expected sum of
    precisions given x, divided by R' + x. A query without a hit counts as 0. A k beyond the database means all of it.

    Returns:
        float64 (queries,) in 0..1; nan for a query without relevant items.

    Raises:
        InputError: if k is no whole number of at least 1.

    Example:
        >>> one_of_two_hits = DistanceHistograms(all=np.array([[1, 2]]), relevant=np.array([[0, 1]]))
        >>> average_precision_at_by_hits(one_of_two_hits, k=2)
        array([0.25])
    """
    k = min(check_rank(k), histograms.database_size)
    return np.concatenate([_of_block(groups, k) for groups in RelevantGroups.in_blocks(histograms)])


def mean_average_precision_at_by_hits(histograms: DistanceHistograms, k: int) -> float:
    """Mean of `average_precision_at_by_hits` over the queries that have relevant items; nan if there are none."""
    return mean_of_evaluated(average_precision_at_by_hits(histograms, k), histograms.relevant_items > 0)


def _of_block(groups: RelevantGroups, k: int) -> NDArray[np.float64]:
    first = groups.first(k)
    whole = first.size_before + first.size <= k
    # Values of a query from the groups before the cut: sum of precisions, and hits.
    sums = first.sum_by_query(np.where(whole, first.precision_sums(k), 0.0))
    hits = first.sum_by_query(np.where(whole, first.relevant, 0))
    with np.errstate(invalid="ignore"):
        averages = np.where(hits > 0, sums / np.maximum(hits, 1), 0.0)
    cut = np.flatnonzero(~whole)
    query, before = first.query[cut], first.size_before[cut]
    expected = np.empty(len(cut))
    arguments: tuple[Any, ...] = (
        *(values[cut] for values in (first.size, first.relevant, first.size_before, first.relevant_before)),
        *(sums[query], harmonic_difference(before, np.full(len(cut), k)), k, expected),
    )
    _expect(*arguments)
    averages[query] = expected
    return np.where(first.relevant_items > 0, averages, np.nan)


@njit(cache=True, nogil=True)
def _average_with(x: int, places: int, before: int, hits: int, sum_before: float, reciprocals: float) -> float:
    """Average precision if x relevant items fall into so many places behind `before` items, of which `hits` are."""
    if hits + x == 0:
        return 0.0
    growth = (x - 1) / (places - 1) if places > 1 else 0.0
    if_relevant = (hits + 1 - growth * (before + 1)) * reciprocals + growth * places
    return (sum_before + x / places * if_relevant) / (hits + x)


@njit(cache=True, nogil=True)
def _expect(
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
