"""What follows from counts of items by Hamming distance: average precision, precision, recall and their curves.

Items at one distance are tied, and any order among them is an accident of storage. So every metric here is the
expectation over all orders within ties, in closed form. Throughout, a group is the set of items at one distance:
n items, r of them relevant, behind N' nearer items of which R' are relevant; R items are relevant in all.
Groups without relevant items add nothing to any sum, and are left out of all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.errors import InputError
from deephash_pipeline.retrieval.counting import count_distances
from deephash_pipeline.retrieval.groups import RelevantGroups
from deephash_pipeline.retrieval.harmonic import harmonic_difference
from deephash_pipeline.retrieval.histograms import DistanceHistograms
from deephash_pipeline.retrieval.labels import check_labels
from deephash_pipeline.retrieval.ranks import check_rank, mean_of_evaluated, ratio

LOOKUP_RADIUS = 2
TRUNCATION_RANK = 1000


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """Precision and recall at the search radii (in bits) or ranks in `point`; each array has shape (points,)."""

    point: NDArray[np.int64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]


def average_precision(histograms: DistanceHistograms) -> NDArray[np.float64]:
    """Average precision of every query over the whole database, the mean over all orders within ties.

    A relevant item at place t of its group has (t - 1)(r - 1)/(n - 1) relevant ones of the group before it on average:
    AP = 1/R sum_groups r/n sum_{t=1..n} [R' + 1 + (t - 1)(r - 1)/(n - 1)] / (N' + t), summed by harmonic numbers.

    Returns:
        float64 (queries,) in 0..1; nan for a query without relevant items, whose average precision is undefined.
    """
    return average_precision_at(histograms, histograms.database_size)


def mean_average_precision(histograms: DistanceHistograms) -> float:
    """Mean of `average_precision` over the queries that have relevant items; nan if there are none."""
    return mean_of_evaluated(average_precision(histograms), histograms.relevant_items > 0)


def average_precision_at(histograms: DistanceHistograms, k: int) -> NDArray[np.float64]:
    """Average precision of the first k items, the mean over all orders within ties, divided by min(R, k).

    Dividing by the relevant items found among the first k instead, as is often seen, rewards a query that finds few.
    A k beyond the database means all of it.

    Returns:
        float64 (queries,) in 0..1; nan for a query without relevant items.

    Raises:
        InputError: if k is no whole number of at least 1.
    """
    k = min(check_rank(k), histograms.database_size)
    return _by_query(histograms, lambda groups: _average_precision_at(groups, k))


def average_precision_bounds(histograms: DistanceHistograms) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Largest and smallest average precision that any order within ties gives: (optimistic, pessimistic).

    The optimistic order puts the relevant items of every group first, the pessimistic one puts them last.

    Returns:
        Two arrays, float64 (queries,) in 0..1; nan for a query without relevant items.
    """
    optimistic, pessimistic = _by_query(histograms, _average_precision_bounds)
    return optimistic, pessimistic


def precision_at(histograms: DistanceHistograms, k: int) -> NDArray[np.float64]:
    """Expected share of relevant items among the first k, float64 (queries,); a k beyond the database means all of it.

    Raises:
        InputError: if k is no whole number of at least 1.
    """
    k = min(check_rank(k), histograms.database_size)
    return _by_query(histograms, lambda groups: _expected_relevant(groups, k)) / k


def recall_at(histograms: DistanceHistograms, k: int) -> NDArray[np.float64]:
    """Expected share of the relevant items that are among the first k, float64 (queries,); nan if there are none.

    Raises:
        InputError: if k is no whole number of at least 1.
    """
    k = check_rank(k)
    found = _by_query(histograms, lambda groups: _expected_relevant(groups, k))
    return ratio(found, histograms.relevant_items, if_empty=np.nan)


def precision_within_radius(
    histograms: DistanceHistograms, radius: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Precision among the items within a Hamming radius: what a lookup in a hash table returns, without a ranking.

    Returns:
        Precision, float64 (queries,), and whether the lookup failed, bool (queries,): an empty ball has precision 0.

    Raises:
        InputError: if the radius is no whole number of at least 0.
    """
    if isinstance(radius, bool) or not isinstance(radius, Integral) or radius < 0:
        raise InputError(f"radius is {radius!r}; give a whole number of bits of at least 0.")
    found = histograms.all[:, : radius + 1].sum(axis=1)
    return ratio(histograms.relevant[:, : radius + 1].sum(axis=1), found, if_empty=0.0), found == 0


def precision_recall_by_radius(histograms: DistanceHistograms) -> PrecisionRecallCurve:
    """Micro-averaged precision and recall at every search radius 0..K, as in the paper's precision-recall figures.

    Counts are summed over the queries that have relevant items, then divided. Precision is nan at a radius at which no
    query finds anything, recall where no query has relevant items.
    """
    evaluated = histograms.relevant_items > 0
    found = np.cumsum(histograms.all[evaluated].sum(axis=0))
    relevant = np.cumsum(histograms.relevant[evaluated].sum(axis=0))
    return PrecisionRecallCurve(
        point=np.arange(len(found)),
        precision=ratio(relevant, found, if_empty=np.nan),
        recall=ratio(relevant, relevant[-1:], if_empty=np.nan),
    )


def precision_recall_by_rank(histograms: DistanceHistograms, ranks: NDArray[np.integer[Any]]) -> PrecisionRecallCurve:
    """Expected precision and recall among the first k items for each k of `ranks`: means over queries.

    Queries without relevant items are left out; if there are no others, the curve is nan. A k beyond the database means
    all of it. Time and memory grow with the database and with queries x (K + 1), not with queries x ranks.

    Raises:
        InputError: if `ranks` is not a one-dimensional array of whole numbers of at least 1.
    """
    if not isinstance(ranks, np.ndarray) or ranks.ndim != 1 or not np.issubdtype(ranks.dtype, np.integer):
        raise InputError("ranks must be a one-dimensional integer array, such as np.arange(1, 1001).")
    if np.any(ranks < 1):
        raise InputError(f"ranks holds {ranks.min()}; give ranks of at least 1.")
    places = histograms.database_size
    points = ranks.astype(np.int64)
    looked_up = np.minimum(points, places)
    # Every place of a group adds r/n relevant items on average: this slope starts behind place N' and ends with N' + n.
    changes = np.zeros((2, places + 1))
    for groups in RelevantGroups.in_blocks(histograms):
        slopes = groups.relevant / groups.size
        shares = slopes / groups.relevant_items[groups.query]
        for change, slope in zip(changes, (slopes, shares), strict=True):
            np.add.at(change, groups.size_before, slope)
            np.subtract.at(change, groups.size_before + groups.size, slope)
    relevant, recalled = np.cumsum(np.cumsum(changes, axis=1), axis=1)[:, looked_up - 1]
    queries = np.full(len(points), np.count_nonzero(histograms.relevant_items))
    return PrecisionRecallCurve(
        point=points,
        precision=ratio(relevant, queries * looked_up, if_empty=np.nan),
        recall=ratio(recalled, queries, if_empty=np.nan),
    )


def chance_level(query_labels: NDArray[Any], database_labels: NDArray[Any]) -> float:
    """Mean average precision of a hash function that gives every image the same code.

    Args:
        query_labels: whole numbers, (queries,); or bool, or uint8 of 0 and 1, (queries, classes).
        database_labels: of the same kind, for the items.

    Returns:
        The mean over the queries that have a relevant item in the database; nan if there is none.

    Raises:
        InputError: if the labels are of no such kind, or there are none.
    """
    if query_labels.ndim == 2:
        same, code = (np.zeros((len(labels), 1), np.uint8) for labels in (query_labels, database_labels))
        return mean_average_precision(count_distances(same, query_labels, code, database_labels, code_length=1))
    classes, queries = np.unique(check_labels(query_labels, "query_labels"), return_counts=True)
    in_order = np.sort(check_labels(database_labels, "database_labels"))
    counts = np.empty((2, len(classes), 1), dtype=np.int64)
    counts[0] = len(in_order)
    counts[1, :, 0] = np.searchsorted(in_order, classes, "right") - np.searchsorted(in_order, classes, "left")
    of_class = average_precision(DistanceHistograms(all=counts[0], relevant=counts[1]))
    known = counts[1, :, 0] > 0
    return float(np.average(of_class[known], weights=queries[known])) if known.any() else float("nan")


def retrieval_metrics(histograms: DistanceHistograms) -> dict[str, float | int]:
    """Every metric of an evaluation that is a single number, by name.

    Means and the failure rate are over the queries that have relevant items; the others are counted in
    `queries_without_relevant_items`. If there are only such queries, the metrics are nan.
    """
    database_size = histograms.database_size
    truncation = min(TRUNCATION_RANK, database_size)

    def metrics(groups: RelevantGroups) -> NDArray[np.float64]:
        return np.vstack(
            [
                _average_precision_at(groups, database_size),
                _average_precision_bounds(groups),
                _average_precision_at(groups, truncation),
                _expected_relevant(groups, truncation) / truncation,
            ]
        )

    evaluated = histograms.relevant_items > 0
    average, optimistic, pessimistic, truncated, precision = _by_query(histograms, metrics)
    precision_in_ball, failed = precision_within_radius(histograms, LOOKUP_RADIUS)
    return {
        "mean_average_precision": mean_of_evaluated(average, evaluated),
        "mean_average_precision_optimistic": mean_of_evaluated(optimistic, evaluated),
        "mean_average_precision_pessimistic": mean_of_evaluated(pessimistic, evaluated),
        "mean_average_precision_at_1000": mean_of_evaluated(truncated, evaluated),
        "precision_at_1000": mean_of_evaluated(precision, evaluated),
        "precision_within_radius_2": mean_of_evaluated(precision_in_ball, evaluated),
        "lookup_failure_rate_radius_2": mean_of_evaluated(failed, evaluated),
        "queries": len(evaluated),
        "queries_without_relevant_items": int(np.count_nonzero(~evaluated)),
        "database_size": database_size,
    }


def _by_query(
    histograms: DistanceHistograms, metrics: Callable[[RelevantGroups], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Join what `metrics` returns for the queries of each block: float64 (queries,), or (metrics, queries)."""
    return np.concatenate([metrics(groups) for groups in RelevantGroups.in_blocks(histograms)], axis=-1)


def _average_precision_at(groups: RelevantGroups, k: int) -> NDArray[np.float64]:
    """Sum the formula of `average_precision` over places up to k, which is at most the database."""
    first = groups.first(k)
    expected = first.sum_by_query(first.precision_sums(k))
    return ratio(expected, np.minimum(first.relevant_items, k), if_empty=np.nan)


def _average_precision_bounds(groups: RelevantGroups) -> NDArray[np.float64]:
    """Return the optimistic and the pessimistic values as rows, float64 (2, queries)."""

    def relevant_in_a_row_behind(before: NDArray[np.int64]) -> NDArray[np.float64]:
        # sum_{i=1..r} (R' + i)/(before + i) = r - (before - R') (H(before + r) - H(before))
        reciprocals = harmonic_difference(before, before + groups.relevant)
        return groups.sum_by_query(groups.relevant - (before - groups.relevant_before) * reciprocals)

    optimistic = relevant_in_a_row_behind(groups.size_before)
    pessimistic = relevant_in_a_row_behind(groups.size_before + groups.size - groups.relevant)
    return ratio(np.stack([optimistic, pessimistic]), groups.relevant_items, if_empty=np.nan)


def _expected_relevant(groups: RelevantGroups, k: int) -> NDArray[np.float64]:
    """Return the expected number of relevant items among the first k, float64 (queries,)."""
    first = groups.first(k)
    return first.sum_by_query(first.relevant / first.size * np.minimum(first.size, k - first.size_before))
