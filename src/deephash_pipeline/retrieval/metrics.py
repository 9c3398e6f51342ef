"""Metrics from counts of items by Hamming distance: average precision, precision and recall.

Items at one distance are tied, and any order among them is an accident of storage. So every metric here is the
expectation over all orders within ties, in closed form. Throughout, a group is the set of items at one distance:
n items, r of them relevant, after N' nearer items of which R' are relevant; R items are relevant in all.
Groups without relevant items add nothing to any sum, and are left out of all of them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.retrieval.codes import check_count
from deephash_pipeline.retrieval.counting import DistanceHistograms, count_distances
from deephash_pipeline.retrieval.groups import RelevantGroups, harmonic_difference, mean_of_evaluated, ratio
from deephash_pipeline.retrieval.labels import check_labels

LOOKUP_RADIUS = 2
TRUNCATION_RANK = 1000


def average_precision(histograms: DistanceHistograms) -> NDArray[np.float64]:
    """Average precision of every query over the whole database, the mean over all orders within ties.

    A relevant item at place t of its group has (t - 1)(r - 1)/(n - 1) relevant ones of the group before it on average:
    AP = 1/R sum_groups r/n sum_{t=1..n} [R' + 1 + (t - 1)(r - 1)/(n - 1)] / (N' + t), summed by harmonic numbers.

    Returns:
        float64 (queries,) in 0..1; nan for a query without relevant items, whose average precision is undefined.

    Example:
        >>> one_of_two = DistanceHistograms(all=np.array([[1, 2]]), relevant=np.array([[0, 1]]))
        >>> average_precision(one_of_two)
        array([0.41666667])
    """
    return average_precision_at(histograms, histograms.database_size)


def mean_average_precision(histograms: DistanceHistograms) -> float:
    """Mean of `average_precision` over the queries that have relevant items; nan if there are none.

    Example:
        >>> one_of_two = DistanceHistograms(all=np.array([[1, 2]]), relevant=np.array([[0, 1]]))
        >>> round(mean_average_precision(one_of_two), 4)
        0.4167
    """
    return mean_of_evaluated(average_precision(histograms), histograms.relevant_items > 0)


def average_precision_at(histograms: DistanceHistograms, k: int) -> NDArray[np.float64]:
    """Average precision of the first k items, the mean over all orders within ties, divided by min(R, k).

    Dividing by the relevant items found among the first k instead, as is often seen, rewards a query that finds few.
    A k beyond the database means all of it.

    Returns:
        float64 (queries,) in 0..1; nan for a query without relevant items.

    Raises:
        InputError: if k is no whole number of at least 1.

    Example:
        >>> one_of_two = DistanceHistograms(all=np.array([[1, 2]]), relevant=np.array([[0, 1]]))
        >>> average_precision_at(one_of_two, k=2)
        array([0.25])
    """
    k = min(check_count(k, "k"), histograms.database_size)
    return _by_query(histograms, lambda groups: _average_precision_at(groups, k))


def average_precision_bounds(histograms: DistanceHistograms) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Largest and smallest average precision that any order within ties gives: (optimistic, pessimistic).

    The optimistic order puts the relevant items of every group first, the pessimistic one puts them last.

    Returns:
        Two arrays, float64 (queries,) in 0..1; nan for a query without relevant items.

    Example:
        >>> one_of_two = DistanceHistograms(all=np.array([[1, 2]]), relevant=np.array([[0, 1]]))
        >>> optimistic, pessimistic = average_precision_bounds(one_of_two)
        >>> optimistic.round(4), pessimistic.round(4)
        (array([0.5]), array([0.3333]))
    """
    optimistic, pessimistic = _by_query(histograms, _average_precision_bounds)
    return optimistic, pessimistic


def precision_at(histograms: DistanceHistograms, k: int) -> NDArray[np.float64]:
    """Expected share of relevant items among the first k, float64 (queries,); a k beyond the database means all of it.

    Raises:
        InputError: if k is no whole number of at least 1.

    Example:
        >>> one_of_two = DistanceHistograms(all=np.array([[1, 2]]), relevant=np.array([[0, 1]]))
        >>> precision_at(one_of_two, k=2)
        array([0.25])
    """
    k = min(check_count(k, "k"), histograms.database_size)
    return _by_query(histograms, lambda groups: _expected_relevant(groups, k)) / k


def recall_at(histograms: DistanceHistograms, k: int) -> NDArray[np.float64]:
    """Expected share of the relevant items that are among the first k, float64 (queries,); nan if there are none.

    Raises:
        InputError: if k is no whole number of at least 1.

    Example:
        >>> one_of_two = DistanceHistograms(all=np.array([[1, 2]]), relevant=np.array([[0, 1]]))
        >>> recall_at(one_of_two, k=2)
        array([0.5])
    """
    k = min(check_count(k, "k"), histograms.database_size)
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

    Example:
        >>> one_of_two = DistanceHistograms(all=np.array([[1, 2]]), relevant=np.array([[0, 1]]))
        >>> precision, failed = precision_within_radius(one_of_two, radius=1)
        >>> precision.round(4), failed
        (array([0.3333]), array([False]))
    """
    radius = check_count(radius, "radius", least=0)
    found = histograms.all[:, : radius + 1].sum(axis=1)
    return ratio(histograms.relevant[:, : radius + 1].sum(axis=1), found, if_empty=0.0), found == 0


NEAR_CHANCE = 0.1
"""Share of the way from chance to a perfect order, below which next to nothing was learned."""


def is_near_chance(mean_average_precision: float, chance: float) -> bool:
    """Tell whether next to nothing was learned: mAP is hardly above that of equal codes; False if one of them is nan.

    Example:
        >>> is_near_chance(0.18, chance=0.176), is_near_chance(0.5, chance=0.176)
        (True, False)
    """
    return mean_average_precision - chance < NEAR_CHANCE * (1 - chance)


def chance_level(query_labels: NDArray[Any], database_labels: NDArray[Any]) -> float:
    """Mean average precision of a hash function that gives every image the same code.

    Args:
        query_labels: whole numbers, (queries,); or bool, or uint8 of 0 and 1, (queries, classes).
        database_labels: database labels of the same kind, for the items.

    Returns:
        The mean over the queries that have a relevant item in the database; nan if there is none.

    Raises:
        InputError: if the labels are of no such kind, or there are none.

    Example:
        >>> round(chance_level(np.array([0, 1]), np.array([0, 0, 0, 1])), 4)
        0.6806
    """
    if np.ndim(query_labels) == 2:
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

    Example:
        >>> one_of_two = DistanceHistograms(all=np.array([[1, 2]]), relevant=np.array([[0, 1]]))
        >>> metrics = retrieval_metrics(one_of_two)
        >>> round(metrics["mean_average_precision"], 4), metrics["queries"], metrics["database_size"]
        (0.4167, 1, 3)
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

    def relevant_in_a_row_after(before: NDArray[np.int64]) -> NDArray[np.float64]:
        # sum_{i=1..r} (R' + i)/(before + i) = r - (before - R') (H(before + r) - H(before))
        reciprocals = harmonic_difference(before, before + groups.relevant)
        return groups.sum_by_query(groups.relevant - (before - groups.relevant_before) * reciprocals)

    optimistic = relevant_in_a_row_after(groups.size_before)
    pessimistic = relevant_in_a_row_after(groups.size_before + groups.size - groups.relevant)
    return ratio(np.stack([optimistic, pessimistic]), groups.relevant_items, if_empty=np.nan)


def _expected_relevant(groups: RelevantGroups, k: int) -> NDArray[np.float64]:
    """Return the expected number of relevant items among the first k, float64 (queries,)."""
    first = groups.first(k)
    return first.sum_by_query(first.relevant / first.size * np.minimum(first.size, k - first.size_before))
