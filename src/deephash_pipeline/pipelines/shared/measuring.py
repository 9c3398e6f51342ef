"""From the codes of a cell to its metrics and curves."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from kedro.pipeline import Node
from numpy.typing import NDArray

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.sources.collection import require_labels
from deephash_pipeline.pipelines.shared.bundles import Bundle, node
from deephash_pipeline.pipelines.shared.searching import LABEL_SETS, LabelSets, finds_anything, searched
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
from deephash_pipeline.retrieval.protocols import BESIDE_METRICS, Protocol, require_protocol

POINTS_BY_RANK = 200


Counts = DistanceHistograms | GradedHistograms


class Histograms(NamedTuple):
    """Distances from the queries, by the protocol and by the one beside it, and from the validation images.

    With graded relevance where images have several labels.
    """

    queries: Counts
    beside: Counts
    validation: DistanceHistograms


def count_query_distances(codes: CodeSets, labels: LabelSets, protocol: str) -> Counts:
    """Count, for each query, all and the relevant items of the database at each distance.

    Where images have several labels, relevance is graded: the number of labels that query and item share.

    Raises:
        InputError: no query's class is in the database, or all are of one class.
    """
    database = searched(require_protocol(protocol), codes, labels)
    if not finds_anything(labels.query, database.labels):
        raise InputError(
            f"no query has an image of its class to find by protocol {protocol}: set protocol to another, "
            "or data_ingestion.unseen_classes to 0"
        )
    require_labels(database.labels, "evaluation")
    return _count(codes, labels.query, database.codes, database.labels)


def count_beside_distances(codes: CodeSets, labels: LabelSets, protocol: str) -> Counts:
    """Count the same by the protocol beside; none, where it has no images to search."""
    beside = require_protocol(protocol).beside
    if beside is not None:
        database = searched(require_protocol(beside), codes, labels)
        if finds_anything(labels.query, database.labels):
            return _count(codes, labels.query, database.codes, database.labels)
    return _no_counts(codes)


def count_validation_distances(codes: CodeSets, labels: LabelSets) -> DistanceHistograms:
    """Count distances from the validation images to the training set; none where these find nothing there."""
    if not finds_anything(labels.validation, labels.training):
        return _no_counts(codes)
    return count_distances(codes.validation, labels.validation, codes.database, labels.training, codes.code_length)


def measure_retrieval(
    histograms: Histograms, codes: CodeSets, labels: LabelSets, protocol: str, cell: Cell
) -> tuple[dict[str, Any], pd.DataFrame]:
    """Derive a cell's metrics and its precision-recall curves from counts.

    Where there are validation images, mAP is also measured with them as queries: that is the metric to choose
    parameters by. Metrics by the protocol beside have its name before theirs.

    Returns:
        Metrics by name, and a frame with the columns method, code_length, kind (``radius`` or ``rank``), point,
        precision, recall.
    """
    by = require_protocol(protocol)
    database = searched(by, codes, labels)
    queries, validation = _ungraded(histograms.queries), histograms.validation
    identity = {"method": cell.method, "code_length": codes.code_length}
    metrics = {
        **identity,
        "protocol": by.name,
        **_metrics_of(histograms.queries),
        **_metrics_beside(histograms.beside, by, codes, labels),
        "validation_mean_average_precision": mean_average_precision(validation) if len(validation.all) else None,
        "chance_level": chance_level(labels.query, database.labels),
        "distinct_database_codes": distinct_codes(database.codes),
        "mean_bit_balance": float(bit_balance(database.codes, codes.code_length).mean()),
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


def measuring_nodes() -> list[Node]:
    """Make the nodes that lead from the codes of a cell to its metrics."""
    histograms = Bundle(Histograms, ("query_histograms", "beside_histograms", "validation_histograms"))
    of_queries = ("codes", LABEL_SETS, "params:protocol")
    return [
        node(count_query_distances, of_queries, "query_histograms", "count_distances"),
        node(count_beside_distances, of_queries, "beside_histograms"),
        node(count_validation_distances, ["codes", LABEL_SETS], "validation_histograms"),
        node(measure_retrieval, [histograms, *of_queries, "params:cell"], ["metrics", "curves"], "measure"),
    ]


def _count(
    codes: CodeSets, query_labels: NDArray[Any], database: NDArray[np.uint8], database_labels: NDArray[Any]
) -> Counts:
    count = count_shared_labels if query_labels.ndim == 2 else count_distances
    return count(codes.query, query_labels, database, database_labels, codes.code_length)


def _no_counts(codes: CodeSets) -> DistanceHistograms:
    none = np.zeros((0, codes.code_length + 1), dtype=np.int64)
    return DistanceHistograms(all=none, relevant=none)


def _ungraded(counts: Counts) -> DistanceHistograms:
    return counts.distances if isinstance(counts, GradedHistograms) else counts


def _metrics_of(counts: Counts) -> dict[str, Any]:
    distances = _ungraded(counts)
    return {
        **retrieval_metrics(distances),
        "mean_average_precision_at_1000_by_hits": mean_average_precision_at_by_hits(distances, TRUNCATION_RANK),
        **(graded_metrics(counts) if isinstance(counts, GradedHistograms) else {}),
    }


def _metrics_beside(counts: Counts, by: Protocol, codes: CodeSets, labels: LabelSets) -> dict[str, Any]:
    if by.beside is None or not len(_ungraded(counts).all):
        return {}
    database = searched(require_protocol(by.beside), codes, labels)
    found = {**_metrics_of(counts), "chance_level": chance_level(labels.query, database.labels)}
    return {f"{by.beside}_{name}": found[name] for name in BESIDE_METRICS if name in found}
