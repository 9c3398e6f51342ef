"""Hamming ranking: counts of distances, and every figure that follows from them."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deephash_pipeline.errors import InputError
from deephash_pipeline.grid import Cell
from deephash_pipeline.retrieval import (
    CodeSets,
    DistanceHistograms,
    bit_balance,
    chance_level,
    count_distances,
    distinct_codes,
    mean_average_precision,
    precision_recall_by_radius,
    precision_recall_by_rank,
    retrieval_metrics,
)

POINTS_BY_RANK = 200


def count_query_distances(
    codes: CodeSets, query_labels: NDArray[np.int64], database_labels: NDArray[np.int64]
) -> DistanceHistograms:
    """Count, for each query, all and the relevant items of the database at each distance.

    Raises:
        InputError: no query's class is in the database.
    """
    if not np.isin(query_labels, database_labels).any():
        raise InputError(
            "no query has an image of its class in the training set: run `held_out_evaluation` instead, "
            "or set data_ingestion.unseen_classes to 0"
        )
    return count_distances(codes.query, query_labels, codes.database, database_labels, codes.code_length)


def measure_retrieval(
    query_histograms: DistanceHistograms,
    codes: CodeSets,
    query_labels: NDArray[np.int64],
    validation_labels: NDArray[np.int64],
    database_labels: NDArray[np.int64],
    cell: Cell,
) -> tuple[dict[str, Any], pd.DataFrame]:
    """Derive a cell's figures and its precision-recall curves from counts.

    Where there are validation images, mAP is also measured with them as queries: that is the figure to choose
    parameters by.

    Returns:
        Figures by name, and a frame with the columns method, code_length, kind (``radius`` or ``rank``), point,
        precision, recall.
    """
    labels = {"method": cell.method, "code_length": codes.code_length}
    validation: float | None = None
    if len(validation_labels):
        validation = mean_average_precision(
            count_distances(codes.validation, validation_labels, codes.database, database_labels, codes.code_length)
        )
    metrics = {
        **labels,
        **retrieval_metrics(query_histograms),
        "validation_mean_average_precision": validation,
        "chance_level": chance_level(query_labels, database_labels),
        "distinct_database_codes": distinct_codes(codes.database),
        "mean_bit_balance": float(bit_balance(codes.database, codes.code_length).mean()),
    }
    ranks = np.unique(np.geomspace(1, query_histograms.database_size, POINTS_BY_RANK).round().astype(np.int64))
    curves = {
        "radius": precision_recall_by_radius(query_histograms),
        "rank": precision_recall_by_rank(query_histograms, ranks),
    }
    frames = [
        pd.DataFrame(
            {**labels, "kind": kind, "point": curve.point, "precision": curve.precision, "recall": curve.recall}
        )
        for kind, curve in curves.items()
    ]
    return metrics, pd.concat(frames, ignore_index=True)


def collect_metrics(*metrics: dict[str, Any]) -> list[dict[str, Any]]:
    """Put the figures of all cells into one list, in the order of the grid."""
    return list(metrics)


def join_curves(*curves: pd.DataFrame) -> pd.DataFrame:
    """Stack the precision-recall curves of all cells."""
    return pd.concat(curves, ignore_index=True)
