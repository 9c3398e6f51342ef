"""From the codes of a cell to its metrics and curves."""

from typing import Any

import numpy as np
import pandas as pd
from kedro.pipeline import Node
from numpy.typing import NDArray

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.sources.collection import require_labels
from deephash_pipeline.pipelines.shared.bundles import node
from deephash_pipeline.pipelines.shared.searching import LABEL_SETS, SearchedDatabase, Sets, finds_anything, searched
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


def measure_retrieval(codes: CodeSets, labels: Sets, protocol: str, cell: Cell) -> tuple[dict[str, Any], pd.DataFrame]:
    """Count the items of the database at each distance from the queries, and derive a cell's metrics and curves.

    Where images have several labels, relevance is graded: the number of labels that query and item share. Where there
    are validation images, mAP is also measured with them as queries: that is the metric to choose parameters by.
    Metrics by the protocol beside have its name before theirs.

    Returns:
        Metrics by name, and a frame with the columns method, code_length, kind (``radius`` or ``rank``), point,
        precision, recall.

    Raises:
        InputError: no query's class is in the database, or all are of one class.
    """
    by = require_protocol(protocol)
    database = searched(by, codes, labels)
    if not finds_anything(labels.query, database.labels):
        raise InputError(
            f"no query has an image of its class to find by protocol {protocol}: set protocol to another, "
            "or data_ingestion.unseen_classes to 0"
        )
    require_labels(database.labels, "evaluation")
    measured, queries = _measured(codes, labels.query, database)
    identity = {"method": cell.method, "code_length": codes.code_length}
    metrics = {
        **identity,
        "protocol": by.name,
        **measured,
        **_metrics_beside(by, codes, labels),
        "validation_mean_average_precision": _map_of_validation(codes, labels),
        "distinct_database_codes": distinct_codes(database.codes),
        "mean_bit_balance": float(bit_balance(database.codes, codes.code_length).mean()),
    }
    ranks = np.unique(np.geomspace(1, queries.database_size, POINTS_BY_RANK).round().astype(np.int64))
    curves = {"radius": precision_recall_by_radius(queries), "rank": precision_recall_by_rank(queries, ranks)}
    frames = [pd.DataFrame({**identity, "kind": kind, **vars(curve)}) for kind, curve in curves.items()]
    return metrics, pd.concat(frames, ignore_index=True)


def measuring_node() -> Node:
    """Make the node that leads from the codes of a cell to its metrics."""
    inputs = ("codes", LABEL_SETS, "params:protocol", "params:cell")
    return node(measure_retrieval, inputs, ["metrics", "curves"], "measure")


def _measured(
    codes: CodeSets, query_labels: NDArray[Any], database: SearchedDatabase
) -> tuple[dict[str, Any], DistanceHistograms]:
    """Count, by the number of labels shared where images may have several; give the metrics and the distances."""
    count = count_shared_labels if query_labels.ndim == 2 else count_distances
    counts = count(codes.query, query_labels, database.codes, database.labels, codes.code_length)
    distances = counts.distances if isinstance(counts, GradedHistograms) else counts
    return {
        **retrieval_metrics(distances),
        "mean_average_precision_at_1000_by_hits": mean_average_precision_at_by_hits(distances, TRUNCATION_RANK),
        **(graded_metrics(counts) if isinstance(counts, GradedHistograms) else {}),
        "chance_level": chance_level(query_labels, database.labels),
    }, distances


def _metrics_beside(by: Protocol, codes: CodeSets, labels: Sets) -> dict[str, Any]:
    """Measure the same by the protocol beside; nothing where it has no images to search."""
    if by.beside is None:
        return {}
    database = searched(require_protocol(by.beside), codes, labels)
    if not finds_anything(labels.query, database.labels):
        return {}
    found, _ = _measured(codes, labels.query, database)
    return {f"{by.beside}_{name}": found[name] for name in BESIDE_METRICS if name in found}


def _map_of_validation(codes: CodeSets, labels: Sets) -> float | None:
    """Have the validation images search the training set; None where they find nothing there."""
    if not finds_anything(labels.validation, labels.training):
        return None
    return mean_average_precision(
        count_distances(codes.validation, labels.validation, codes.database, labels.training, codes.code_length)
    )
