"""Retrieval by real-valued features, measured as retrieval by codes is."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.own_settings import own_settings
from deephash_pipeline.retrieval.by_hits import average_precision_at_by_hits
from deephash_pipeline.retrieval.counting import DistanceHistograms
from deephash_pipeline.retrieval.groups import mean_of_evaluated
from deephash_pipeline.retrieval.labels import check_label_pair, share_a_label
from deephash_pipeline.retrieval.metrics import TRUNCATION_RANK, average_precision, average_precision_at, precision_at

DISTANCES_PER_BLOCK = 2**22
"""Distances of a block of queries: as counts by rank they take a few dozen MiB."""


LARGEST_DIFFERENCE = 1e300
"""Of a difference."""


@own_settings()
def real_valued_metrics(
    queries: NDArray[Any], query_labels: NDArray[Any], items: NDArray[Any], item_labels: NDArray[Any]
) -> dict[str, Any]:
    """Rank the items by their Euclidean distance from each query; equal items are tied, as equal codes are.

    Args:
        queries: features, shape (queries, D).
        query_labels: class numbers (queries,), or multi-hot (queries, classes), bool or uint8.
        items: features of the database, or what stands for them, shape (items, D).
        item_labels: labels of the items, as those of the queries.

    Returns:
        Metrics by the names that those of codes have: mAP over all items, mAP at 1,000 in both conventions, precision
        at 1,000, all items where there are fewer; ``queries``, ``queries_without_relevant_items`` and
        ``database_size``.

    Raises:
        InputError: arrays whose sizes do not fit, or features that are not finite.

    Example:
        >>> items = np.array([[0.0], [1.0], [5.0]])
        >>> labels = np.array([7, 4, 7])
        >>> metrics = real_valued_metrics(np.array([[0.2]]), np.array([7]), items, labels)
        >>> round(metrics["mean_average_precision"], 4)
        0.8333
    """
    queries, items = np.asarray(queries), np.asarray(items)
    if queries.ndim != 2 or items.ndim != 2 or queries.shape[1] != items.shape[1]:
        raise InputError(
            f"queries have shape {queries.shape} and items {items.shape}: give (n, D) and (m, D) of the same features"
        )
    for name, features in (("queries", queries), ("items", items)):
        if not np.isfinite(features).all():
            raise InputError(f"{name} holds NaN or infinity, which is at no distance: leave out its row, or mend it")
    query_labels, item_labels = check_label_pair(query_labels, queries, item_labels, items)
    scores: dict[str, list[NDArray[np.float64]]] = {}
    relevant_items: list[NDArray[np.int64]] = []
    for histograms in _counts_by_rank(queries, query_labels, items, item_labels):
        of_block = {
            f"precision_at_{TRUNCATION_RANK}": precision_at(histograms, TRUNCATION_RANK),
            "mean_average_precision": average_precision(histograms),
            f"mean_average_precision_at_{TRUNCATION_RANK}": average_precision_at(histograms, TRUNCATION_RANK),
            f"mean_average_precision_at_{TRUNCATION_RANK}_by_hits": average_precision_at_by_hits(
                histograms, TRUNCATION_RANK
            ),
        }
        for name, values in of_block.items():
            scores.setdefault(name, []).append(values)
        relevant_items.append(histograms.relevant_items)
    found = np.concatenate(relevant_items) > 0
    return {
        **{name: mean_of_evaluated(np.concatenate(values), found) for name, values in scores.items()},
        "queries": len(queries),
        "queries_without_relevant_items": int((~found).sum()),
        "database_size": len(items),
    }


def _counts_by_rank(
    queries: NDArray[Any], query_labels: NDArray[Any], items: NDArray[Any], item_labels: NDArray[Any]
) -> Iterator[DistanceHistograms]:
    """Counts of items by the rank of their distance, of one block of queries after the other."""
    # An item that occurs several times is compared once: rounding would tell its copies apart.
    different, copies = np.unique(items, axis=0, return_inverse=True)
    centre, exponent = _frame(different)
    points = _moved(different, centre, exponent)
    lengths = (points**2).sum(axis=1)
    per_block = max(1, DISTANCES_PER_BLOCK // len(items))
    for start in range(0, len(queries), per_block):
        block = _moved(queries[start : start + per_block], centre, exponent)
        # Squared distances, but for what a query adds to all of its own.
        distances = (lengths - 2 * block @ points.T)[:, copies.ravel()]
        order = np.argsort(distances, axis=1, kind="stable")
        steps = np.diff(np.take_along_axis(distances, order, axis=1), axis=1) > 0
        rank_in_order = np.concatenate([np.zeros((len(block), 1), np.int64), np.cumsum(steps, axis=1)], axis=1)
        of_block = query_labels[start : start + per_block]
        relevant = share_a_label(of_block, item_labels)
        shape = (len(block), len(items))
        places = rank_in_order + len(items) * np.arange(len(block))[:, np.newaxis]
        counts = np.bincount(places.ravel(), minlength=places.size)
        hits = np.bincount(places[np.take_along_axis(relevant, order, axis=1)], minlength=places.size)
        yield DistanceHistograms(counts.reshape(shape).astype(np.int64), hits.reshape(shape).astype(np.int64))


def _frame(points: NDArray[Any]) -> tuple[NDArray[np.float64], int]:
    """What to compare from, shape (D,), and the power of two to divide by: squares far from 0 lose digits."""
    # One of them: differences of whole numbers are whole numbers, and what is tied stays so.
    centre = points[0].astype(np.float64)
    with np.errstate(over="ignore"):
        apart = np.abs(points - centre).max(initial=0)
    if not apart < LARGEST_DIFFERENCE:
        raise InputError(f"items has numbers up to {np.abs(points).max():.0e}, and squares no room: scale both down")
    return centre, int(np.frexp(apart)[1])


def _moved(features: NDArray[Any], centre: NDArray[np.float64], exponent: int) -> NDArray[np.float64]:
    return np.asarray(np.ldexp(features - centre, -exponent))
