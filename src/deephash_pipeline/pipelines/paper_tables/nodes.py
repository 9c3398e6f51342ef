"""From what the runs of all benchmarks have left to the paper's tables and figures."""

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

import pandas as pd
from plotly.graph_objects import Figure

from deephash_pipeline import reports
from deephash_pipeline.grid import CLASSIFIER_BASELINE, CODE_LENGTHS, METHODS, PAPER_METHODS, SHOWN_CODE_LENGTH

Content = TypeVar("Content")
Tables: TypeAlias = Mapping[str, pd.DataFrame]

NAMES = {method: METHODS[method] for method in PAPER_METHODS}
COMPARED = {method: name for method, name in NAMES.items() if method != CLASSIFIER_BASELINE.method}


def tabulate(
    metrics: Mapping[str, Any],
    curves: Mapping[str, pd.DataFrame],
    hand_crafted: Mapping[str, pd.DataFrame],
    stored: Mapping[str, pd.DataFrame],
) -> dict[str, pd.DataFrame]:
    """Lay out all tables, before any of them is written.

    Args:
        metrics: ``<benchmark>/<method>/b<bits>/metrics.json`` to the metrics of a cell.
        curves: ``<benchmark>/<method>/b32/precision_recall.csv`` to the curves of a cell.
        hand_crafted: ``<benchmark>/hand_crafted.csv`` to mAP on hand-crafted features.
        stored: ``<name>.csv`` to a table as it is before the run.

    Raises:
        InputError: what a stored table has measured would be lost, because its artefacts are missing.
    """
    results = cells_of_benchmarks(metrics)
    joined = {
        benchmark: pd.concat(frames, ignore_index=True) for benchmark, frames in by_benchmark(curves, NAMES).items()
    }
    tables = {
        "map_of_all_methods": reports.all_methods_table(results, COMPARED),
        "three_initialisations": reports.initialisations_table(results, COMPARED),
        "hand_crafted_against_cnn": reports.features_table(results, tables_of_benchmarks(hand_crafted), COMPARED),
        "map_against_bits": reports.code_lengths_table(results, COMPARED, CODE_LENGTHS),
        "precision_recall_at_32_bits": reports.precision_recall_table(joined, COMPARED),
        "unseen_classes": reports.unseen_table(results, NAMES, CODE_LENGTHS),
    }
    for name, table in tables.items():
        if f"{name}.csv" in stored:
            reports.refuse_to_lose(name, stored[f"{name}.csv"], reports.for_readers(table))
    return tables


def write_all_methods(tables: Tables, metrics: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Write the table 'mAP of all methods'."""
    return _compared("mAP of all methods", tables["map_of_all_methods"], metrics)


def write_initialisations(tables: Tables, metrics: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Write the table 'three initialisations'."""
    return _compared("Three initialisations", tables["three_initialisations"], metrics)


def write_features(tables: Tables, metrics: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Write the table 'hand-crafted against CNN'."""
    return _compared("Hand-crafted against CNN", tables["hand_crafted_against_cnn"], metrics)


def draw_map(tables: Tables, metrics: Mapping[str, Any]) -> tuple[pd.DataFrame, str, Figure]:
    """Draw the figure 'mAP against bits'."""
    table = tables["map_against_bits"]
    return *_compared("mAP against bits", table, metrics), reports.paper_figure_map(table, COMPARED)


def draw_precision_recall(tables: Tables, metrics: Mapping[str, Any]) -> tuple[pd.DataFrame, str, Figure]:
    """Draw the figure 'precision-recall at 32 bits'."""
    table = tables["precision_recall_at_32_bits"]
    shown = reports.for_readers(table)
    title = f"Precision and recall at {SHOWN_CODE_LENGTH} bits"
    page = reports.precision_recall_page(title, shown, cells_of_benchmarks(metrics))
    return shown, page, reports.paper_figure_precision_recall(table, COMPARED, SHOWN_CODE_LENGTH)


def write_unseen(tables: Tables, metrics: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Write mAP on CIFAR-10 by the paper's protocol and by two that do not reward memory."""
    table, results = tables["unseen_classes"], cells_of_benchmarks(metrics)
    baseline = NAMES[CLASSIFIER_BASELINE.method]
    page = reports.unseen_page("CIFAR-10: images and classes never seen", table, results, baseline)
    return reports.for_readers(table), page


def _compared(title: str, table: pd.DataFrame, metrics: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    return reports.for_readers(table), reports.compared_page(title, table, cells_of_benchmarks(metrics))


def cells_of_benchmarks(metrics: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Sort ``<benchmark>/<method>/b<bits>/metrics.json`` by benchmark: methods of the paper's tables."""
    return by_benchmark(metrics, NAMES)


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
