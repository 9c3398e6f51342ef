"""mAP@k in the field's convention: average precision divided by the hits among the first k.

Most published code divides so; a query that finds few of many relevant items is rewarded. It is here for comparison
with such values, under a name of its own; `average_precision_at` divides by min(R, k).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.retrieval.codes import check_count
from deephash_pipeline.retrieval.counting import DistanceHistograms
from deephash_pipeline.retrieval.groups import RelevantGroups, harmonic_difference, mean_of_evaluated, ratio
from deephash_pipeline.retrieval.kernels.by_hits import expect


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
    k = min(check_count(k, "k"), histograms.database_size)
    return np.concatenate([_of_block(groups, k) for groups in RelevantGroups.in_blocks(histograms)])


def mean_average_precision_at_by_hits(histograms: DistanceHistograms, k: int) -> float:
    """Mean of `average_precision_at_by_hits` over the queries that have relevant items; nan if there are none.

    Example:
        >>> one_of_two = DistanceHistograms(all=np.array([[1, 2]]), relevant=np.array([[0, 1]]))
        >>> mean_average_precision_at_by_hits(one_of_two, k=2)
        0.25
    """
    return mean_of_evaluated(average_precision_at_by_hits(histograms, k), histograms.relevant_items > 0)


def _of_block(groups: RelevantGroups, k: int) -> NDArray[np.float64]:
    first = groups.first(k)
    whole = first.size_before + first.size <= k
    # Values of a query from the groups before the cut: sum of precisions, and hits.
    sums = first.sum_by_query(np.where(whole, first.precision_sums(k), 0.0))
    hits = first.sum_by_query(np.where(whole, first.relevant, 0))
    averages = ratio(sums, hits, if_empty=0.0)
    cut = np.flatnonzero(~whole)
    query, before = first.query[cut], first.size_before[cut]
    expected = np.empty(len(cut))
    arguments: tuple[Any, ...] = (
        *(values[cut] for values in (first.size, first.relevant, first.size_before, first.relevant_before)),
        *(sums[query], harmonic_difference(before, np.full(len(cut), k)), k, expected),
    )
    expect(*arguments)
    averages[query] = expected
    return np.where(first.relevant_items > 0, averages, np.nan)
