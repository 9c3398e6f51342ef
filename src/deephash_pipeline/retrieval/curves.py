"""Precision and recall as curves, over search radii or ranks; expectations over ties, as in `metrics`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval.counting import DistanceHistograms
from deephash_pipeline.retrieval.groups import RelevantGroups, ratio


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """Precision and recall at the search radii (in bits) or ranks in `point`; each array has shape (points,).

    Example:
        >>> PrecisionRecallCurve(point=np.arange(2), precision=np.array([1.0, 0.5]), recall=np.array([0.2, 1.0])).point
        array([0, 1])
    """

    point: NDArray[np.int64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]


def precision_recall_by_radius(histograms: DistanceHistograms) -> PrecisionRecallCurve:
    """Micro-averaged precision and recall at every search radius 0..K, as in the paper's precision-recall figures.

    Counts are summed over the queries that have relevant items, then divided. Precision is nan at a radius at which no
    query finds anything, recall where no query has relevant items.

    Example:
        >>> one_of_two = DistanceHistograms(all=np.array([[1, 2]]), relevant=np.array([[0, 1]]))
        >>> curve = precision_recall_by_radius(one_of_two)
        >>> curve.point, curve.precision.round(4), curve.recall
        (array([0, 1]), array([0.    , 0.3333]), array([0., 1.]))
    """
    evaluated = histograms.relevant_items > 0
    found = np.cumsum(histograms.all[evaluated].sum(axis=0))
    relevant = np.cumsum(histograms.relevant[evaluated].sum(axis=0))
    precision = ratio(relevant, found, if_empty=np.nan)
    recall = ratio(relevant, relevant[-1:], if_empty=np.nan)
    return PrecisionRecallCurve(np.arange(len(found)), precision, recall)


def precision_recall_by_rank(histograms: DistanceHistograms, ranks: NDArray[np.integer[Any]]) -> PrecisionRecallCurve:
    """Expected precision and recall among the first k items for each k of `ranks`: means over queries.

    Queries without relevant items are left out; if there are no others, the curve is nan. A k beyond the database means
    all of it. Time and memory grow with the database and with queries x (K + 1), not with queries x ranks.

    Raises:
        InputError: if `ranks` is not a one-dimensional array of whole numbers of at least 1.

    Example:
        >>> one_of_two = DistanceHistograms(all=np.array([[1, 2]]), relevant=np.array([[0, 1]]))
        >>> curve = precision_recall_by_rank(one_of_two, np.array([1, 3]))
        >>> curve.precision.round(4), curve.recall
        (array([0.    , 0.3333]), array([0., 1.]))
    """
    if not isinstance(ranks, np.ndarray) or ranks.ndim != 1 or not np.issubdtype(ranks.dtype, np.integer):
        raise InputError("ranks must be a one-dimensional integer array, such as np.arange(1, 1001).")
    if np.any(ranks < 1):
        raise InputError(f"ranks holds {ranks.min()}; give ranks of at least 1.")
    places = histograms.database_size
    points = ranks.astype(np.int64)
    looked_up = np.minimum(points, places)
    # Every place of a group adds r/n relevant items on average: this slope starts after place N' and ends with N' + n.
    changes = np.zeros((2, places + 1))
    for groups in RelevantGroups.in_blocks(histograms):
        slopes = groups.relevant / groups.size
        shares = slopes / groups.relevant_items[groups.query]
        for change, slope in zip(changes, (slopes, shares), strict=True):
            np.add.at(change, groups.size_before, slope)
            np.subtract.at(change, groups.size_before + groups.size, slope)
    relevant, recalled = np.cumsum(np.cumsum(changes, axis=1), axis=1)[:, looked_up - 1]
    queries = np.full(len(points), np.count_nonzero(histograms.relevant_items))
    precision = ratio(relevant, queries * looked_up, if_empty=np.nan)
    return PrecisionRecallCurve(points, precision, ratio(recalled, queries, if_empty=np.nan))
