"""From what the runs of all benchmarks have left to the paper's tables."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from deephash_pipeline.pipelines.grid import CLASSIFIER_BASELINE, PAPER_METHODS
from deephash_pipeline.reports.paper.pages import compared_page
from deephash_pipeline.reports.paper.tables import (
    all_methods_table,
    classifier_baselines_table,
    features_table,
    for_readers,
    with_classifier_baselines,
    with_stored_metrics,
)

TITLES = {"map_of_all_methods": "mAP of all methods", "hand_crafted_against_cnn": "Hand-crafted against CNN"}
BASELINE_TABLE = "classifier_baselines"


def write_paper_tables(
    metrics: Mapping[str, Any],
    hand_crafted: Mapping[str, pd.DataFrame],
    stored: Mapping[str, pd.DataFrame],
    names: dict[str, str],
) -> dict[str, Any]:
    """Lay out all tables, each as rows and as a page.

    Args:
        metrics: ``<benchmark>/<method>/b<bits>/metrics.json`` to the metrics of a cell.
        hand_crafted: ``<benchmark>/hand_crafted.csv`` to mAP on hand-crafted features.
        stored: ``<name>.csv`` to a table as it is before the run; what it has of runs that are not at hand, it keeps.
        names: method -> name.

    Returns:
        ``<name>_rows`` and ``<name>_page`` to what is written.
    """
    compared = {method: name for method, name in names.items() if method != CLASSIFIER_BASELINE.method}
    former = {path.removesuffix(".csv"): table for path, table in stored.items()}
    measured: dict[str, list[Any]] = {}
    for path, cell in metrics.items():
        benchmark, method, *_ = path.split("/")
        if method in PAPER_METHODS:
            measured.setdefault(benchmark, []).append(cell)
    baselines = classifier_baselines_table(measured, former.get(BASELINE_TABLE))
    results = with_classifier_baselines(measured, baselines)
    by_hand = {path.partition("/")[0]: table for path, table in hand_crafted.items()}
    tables = {
        "map_of_all_methods": all_methods_table(results, compared),
        "hand_crafted_against_cnn": features_table(results, by_hand, compared),
    }
    for name in former.keys() & tables.keys():
        tables[name] = with_stored_metrics(tables[name], former[name])
    written: dict[str, Any] = {f"{BASELINE_TABLE}_rows": baselines}
    for name, table in tables.items():
        written[f"{name}_rows"] = for_readers(table)
        written[f"{name}_page"] = compared_page(TITLES[name], table, results, compared)
    return written
