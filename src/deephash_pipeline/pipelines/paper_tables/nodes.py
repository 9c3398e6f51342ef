"""From what the runs of all benchmarks have left to the paper's tables and figures."""

from collections.abc import Mapping
from typing import Any, TypeVar

import pandas as pd
from plotly.graph_objects import Figure

from deephash_pipeline import reports
from deephash_pipeline.grid import CLASSIFIER_BASELINE, CODE_LENGTHS, METHODS, SHOWN_CODE_LENGTH

Content = TypeVar("Content")

COMPARED = {method: name for method, name in METHODS.items() if method != CLASSIFIER_BASELINE.method}


def tabulate_all_methods(metrics: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Lay out the table 'mAP of all methods'."""
    results = cells_of_benchmarks(metrics)
    table = reports.all_methods_table(results, COMPARED)
    return reports.for_readers(table), reports.compared_page("mAP of all methods", table, results)


def tabulate_initialisations(metrics: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Lay out the table 'three initialisations'."""
    results = cells_of_benchmarks(metrics)
    table = reports.initialisations_table(results, COMPARED)
    return reports.for_readers(table), reports.compared_page("Three initialisations", table, results)


def tabulate_features(metrics: Mapping[str, Any], hand_crafted: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Lay out the table 'hand-crafted against CNN'."""
    results = cells_of_benchmarks(metrics)
    table = reports.features_table(results, tables_of_benchmarks(hand_crafted), COMPARED)
    return reports.for_readers(table), reports.compared_page("Hand-crafted against CNN", table, results)


def draw_map(metrics: Mapping[str, Any]) -> tuple[pd.DataFrame, str, Figure]:
    """Draw the figure 'mAP against bits'."""
    results = cells_of_benchmarks(metrics)
    table = reports.code_lengths_table(results, COMPARED, CODE_LENGTHS)
    page = reports.compared_page("mAP against bits", table, results)
    return reports.for_readers(table), page, reports.paper_figure_map(table, COMPARED)


def draw_precision_recall(
    metrics: Mapping[str, Any], curves: Mapping[str, pd.DataFrame]
) -> tuple[pd.DataFrame, str, Figure]:
    """Draw the figure 'precision-recall at 32 bits'.

    Args:
        metrics: of the cells, for the sizes of the benchmarks.
        curves: ``<benchmark>/<method>/b32/precision_recall.csv`` to the curves of a cell.
    """
    joined = {
        benchmark: pd.concat(frames, ignore_index=True) for benchmark, frames in by_benchmark(curves, METHODS).items()
    }
    table = reports.precision_recall_table(joined, COMPARED)
    shown = reports.for_readers(table)
    title = f"Precision and recall at {SHOWN_CODE_LENGTH} bits"
    page = reports.precision_recall_page(title, shown, cells_of_benchmarks(metrics))
    return shown, page, reports.paper_figure_precision_recall(table, COMPARED, SHOWN_CODE_LENGTH)


def tabulate_unseen(held_out: Mapping[str, pd.DataFrame]) -> tuple[pd.DataFrame, str]:
    """Lay out mAP on CIFAR-10 by the paper's protocol and by two that do not reward memory."""
    frames = tables_of_benchmarks(held_out)
    table = reports.unseen_table(frames, METHODS, CODE_LENGTHS)
    page = reports.unseen_page(
        "CIFAR-10: images and classes never seen", table, frames, METHODS[CLASSIFIER_BASELINE.method]
    )
    return reports.for_readers(table), page


def cells_of_benchmarks(metrics: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Sort ``<benchmark>/<method>/b<bits>/metrics.json`` by benchmark; methods that are not on the grid stay away."""
    return by_benchmark(metrics, METHODS)


def tables_of_benchmarks(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Take ``<benchmark>/<name>.csv`` by benchmark."""
    return {path.partition("/")[0]: table for path, table in tables.items()}


def by_benchmark(files: Mapping[str, Content], methods: Mapping[str, str]) -> dict[str, list[Content]]:
    """Sort the files of cells by benchmark."""
    sorted_files: dict[str, list[Content]] = {}
    for path, content in files.items():
        benchmark, method, *_ = path.split("/")
        if method in methods:
            sorted_files.setdefault(benchmark, []).append(content)
    return sorted_files
