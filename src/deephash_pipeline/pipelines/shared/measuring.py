"""From the codes of a cell to its metrics and curves."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from kedro.pipeline import Node
from numpy.typing import NDArray

from deephash_pipeline.errors import InputError
from deephash_pipeline.images.sources.collection import require_labels
from deephash_pipeline.methods import Cell
from deephash_pipeline.pipelines.shared.inputs import Bundle, node
from deephash_pipeline.retrieval import (
    CodeSets,
    DistanceHistograms,
    GradedHistograms,
    bit_balance,
    chance_level,
    count_distances,
    count_shared_labels,
    distinct_codes,
    graded_metrics,
    mean_average_precision,
    mean_average_precision_at_by_hits,
    precision_recall_by_radius,
    precision_recall_by_rank,
    retrieval_metrics,
)
from deephash_pipeline.retrieval.metrics import TRUNCATION_RANK

POINTS_BY_RANK = 200


class Labels(NamedTuple):
    """Labels of the queries and of the database, each int64 of shape (n,), or uint8 of shape (n, classes)."""

    queries: NDArray[Any]
    database: NDArray[Any]


class Histograms(NamedTuple):
    """Distances of the queries, with graded relevance if labels are several, and of the validation images."""

    queries: DistanceHistograms | GradedHistograms
    validation: DistanceHistograms


def count_query_distances(codes: CodeSets, labels: Labels) -> DistanceHistograms | GradedHistograms:
    """Count, for each query, all and the relevant items of the database at each distance.

    Where images have several labels, relevance is graded: the number of labels that query and item share.

    Raises:
        InputError: no query's class is in the database, or all are of one class.
    """
    require_labels(labels.database, "evaluation")
    if labels.queries.ndim == 2:
        return count_shared_labels(codes.query, labels.queries, codes.database, labels.database, codes.code_length)
    if not np.isin(labels.queries, labels.database).any():
        raise InputError(
            "no query has an image of its class in the training set: run `held_out_evaluation` instead, "
            "or set data_ingestion.unseen_classes to 0"
        )
    return count_distances(codes.query, labels.queries, codes.database, labels.database, codes.code_length)


def count_validation_distances(codes: CodeSets, labels: Labels) -> DistanceHistograms:
    """Count the same with the validation images as queries; there may be none."""
    if not len(labels.queries):
        none = np.zeros((0, codes.code_length + 1), dtype=np.int64)
        return DistanceHistograms(all=none, relevant=none)
    return count_distances(codes.validation, labels.queries, codes.database, labels.database, codes.code_length)


def measure_retrieval(
    histograms: Histograms, codes: CodeSets, labels: Labels, cell: Cell
) -> tuple[dict[str, Any], pd.DataFrame]:
    """Derive a cell's metrics and its precision-recall curves from counts.

    Where there are validation images, mAP is also measured with them as queries: that is the metric to choose
    parameters by.

    Returns:
        Metrics by name, and a frame with the columns method, code_length, kind (``radius`` or ``rank``), point,
        precision, recall.
    """
    queries, validation = histograms
    graded: dict[str, float] = {}
    if isinstance(queries, GradedHistograms):
        graded, queries = graded_metrics(queries), queries.distances
    identity = {"method": cell.method, "code_length": codes.code_length}
    metrics = {
        **identity,
        **retrieval_metrics(queries),
        "mean_average_precision_at_1000_by_hits": mean_average_precision_at_by_hits(queries, TRUNCATION_RANK),
        **graded,
        "validation_mean_average_precision": mean_average_precision(validation) if len(validation.all) else None,
        "chance_level": chance_level(labels.queries, labels.database),
        "distinct_database_codes": distinct_codes(codes.database),
        "mean_bit_balance": float(bit_balance(codes.database, codes.code_length).mean()),
    }
    ranks = np.unique(np.geomspace(1, queries.database_size, POINTS_BY_RANK).round().astype(np.int64))
    curves = {"radius": precision_recall_by_radius(queries), "rank": precision_recall_by_rank(queries, ranks)}
    frames = [
        pd.DataFrame(
            {**identity, "kind": kind, "point": curve.point, "precision": curve.precision, "recall": curve.recall}
        )
        for kind, curve in curves.items()
    ]
    return metrics, pd.concat(frames, ignore_index=True)


QUERY_LABELS = Bundle(Labels, ("query_labels", "training_labels"))
VALIDATION_LABELS = Bundle(Labels, ("validation_labels", "training_labels"))


def measuring_nodes() -> list[Node]:
    """Make the nodes that lead from the codes of a cell to its metrics."""
    histograms = Bundle(Histograms, ("query_histograms", "validation_histograms"))
    return [
        node(count_query_distances, ["codes", QUERY_LABELS], "query_histograms", "count_distances"),
        node(
            count_validation_distances,
            ["codes", VALIDATION_LABELS],
            "validation_histograms",
            "count_validation_distances",
        ),
        node(measure_retrieval, [histograms, "codes", QUERY_LABELS, "params:cell"], ["metrics", "curves"], "measure"),
    ]
