from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from deephash_pipeline.errors import InputError
from deephash_pipeline.methods import Cell
from deephash_pipeline.pipelines.shared.measuring import (
    Histograms,
    Labels,
    count_query_distances,
    count_validation_distances,
    measure_retrieval,
)
from deephash_pipeline.retrieval import CodeSets, pack_bits

CELL = Cell(method="deephash", code_length=12)
LABELS = np.arange(36, dtype=np.int64) % 3
QUERY_LABELS = np.arange(9, dtype=np.int64) % 3
NO_LABELS = np.empty(0, dtype=np.int64)


def perfect_codes(*label_sets: NDArray[np.int64]) -> CodeSets:
    """Codes of 12 bits that tell the class and nothing else."""
    database, validation, query = (
        pack_bits(np.repeat(labels[:, None] == np.arange(3), 4, axis=1)) for labels in label_sets
    )
    return CodeSets(database, validation, query, 12)


def measured(validation_labels: NDArray[np.int64]) -> tuple[dict[str, Any], pd.DataFrame]:
    codes = perfect_codes(LABELS, validation_labels, QUERY_LABELS)
    return measured_codes(codes, validation_labels)


def measured_codes(codes: CodeSets, validation_labels: NDArray[np.int64]) -> tuple[dict[str, Any], pd.DataFrame]:
    labels = Labels(QUERY_LABELS, LABELS)
    histograms = Histograms(
        count_query_distances(codes, labels), count_validation_distances(codes, Labels(validation_labels, LABELS))
    )
    return measure_retrieval(histograms, codes, labels, CELL)


def test_the_figures_of_a_cell_say_what_was_measured_on_what() -> None:
    metrics, _ = measured(QUERY_LABELS[:6])
    assert metrics["method"] == "deephash"
    assert metrics["code_length"] == 12
    assert metrics["queries"] == 9
    assert metrics["database_size"] == 36
    assert metrics["mean_average_precision"] == 1
    assert metrics["validation_mean_average_precision"] == 1
    assert metrics["chance_level"] == pytest.approx(1 / 3, abs=0.1)
    assert metrics["distinct_database_codes"] == 3
    assert metrics["mean_bit_balance"] == pytest.approx(1 / 3)


def test_there_is_no_validation_figure_without_validation_images() -> None:
    metrics, _ = measured(NO_LABELS)
    assert metrics["validation_mean_average_precision"] is None
    assert metrics["mean_average_precision"] == 1


def test_the_validation_figure_knows_nothing_of_the_queries() -> None:
    codes = perfect_codes(LABELS, (QUERY_LABELS + 1) % 3, QUERY_LABELS)
    metrics, _ = measured_codes(codes, QUERY_LABELS)
    assert metrics["mean_average_precision"] == 1
    assert metrics["validation_mean_average_precision"] < 0.5


def test_queries_of_classes_that_the_database_lacks_are_refused() -> None:
    with pytest.raises(InputError, match="held_out_evaluation"):
        count_query_distances(perfect_codes(LABELS, NO_LABELS, QUERY_LABELS), Labels(QUERY_LABELS + 3, LABELS))


def test_curves_by_radius_and_by_rank_are_of_the_same_ranking() -> None:
    _, curves = measured(NO_LABELS)
    assert list(curves) == ["method", "code_length", "kind", "point", "precision", "recall"]
    by_radius, by_rank = (curves[curves["kind"] == kind] for kind in ("radius", "rank"))
    assert by_radius["point"].tolist() == list(range(13))
    assert by_rank["point"].is_monotonic_increasing
    assert by_radius["recall"].iloc[-1] == by_rank["recall"].iloc[-1] == 1
    assert by_radius["precision"].iloc[-1] == pytest.approx(by_rank["precision"].iloc[-1])
