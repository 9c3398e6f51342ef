"""From what the runs of all benchmarks have left to the paper's tables and figures."""

from collections.abc import Mapping
from typing import Any, TypeVar

import pandas as pd

from deephash_pipeline.common.cell import SHOWN_CODE_LENGTH
from deephash_pipeline.pipelines.grid import CLASSIFIER_BASELINE, CODE_LENGTHS, PAPER_METHODS
from deephash_pipeline.reports.cells import cell_protocol
from deephash_pipeline.reports.paper.figures import (
    paper_figure_map,
    paper_figure_precision_recall,
    precision_recall_table,
)
from deephash_pipeline.reports.paper.pages import compared_page, precision_recall_page, unseen_page
from deephash_pipeline.reports.paper.tables import (
    Results,
    all_methods_table,
    code_lengths_table,
    features_table,
    for_readers,
    unseen_table,
)
from deephash_pipeline.reports.stored_tables import (
    classifier_baselines_table,
    with_classifier_baselines,
    with_stored_curves,
    with_stored_metrics,
)

Content = TypeVar("Content")

TITLES = {
    "map_of_all_methods": "mAP of all methods",
    "hand_crafted_against_cnn": "Hand-crafted against CNN",
    "map_against_bits": "mAP against bits",
    "precision_recall_at_32_bits": f"Precision and recall at {SHOWN_CODE_LENGTH} bits",
    "unseen_classes": "CIFAR-10: images and classes never seen",
}
CURVES, BASELINES = "precision_recall_at_32_bits", "classifier_baselines"


def write_paper_tables(
    metrics: Mapping[str, Any],
    curves: Mapping[str, pd.DataFrame],
    hand_crafted: Mapping[str, pd.DataFrame],
    stored: Mapping[str, pd.DataFrame],
    names: dict[str, str],
) -> dict[str, Any]:
    """Lay out all tables, each as rows and as a page, and the two figures.

    Args:
        metrics: ``<benchmark>/<method>/b<bits>/metrics.json`` to the metrics of a cell.
        curves: ``<benchmark>/<method>/b32/precision_recall.csv`` to the curves of a cell.
        hand_crafted: ``<benchmark>/hand_crafted.csv`` to mAP on hand-crafted features.
        stored: ``<name>.csv`` to a table as it is before the run; what it has of runs that are not at hand, it keeps.
        names: method -> name.

    Returns:
        ``<name>_rows``, ``<name>_page`` and ``<name>_figure`` to what is written.
    """
    compared = {method: name for method, name in names.items() if method != CLASSIFIER_BASELINE.method}
    former = {path.removesuffix(".csv"): table for path, table in stored.items()}
    measured = by_benchmark(metrics)
    baselines = classifier_baselines_table(measured, former.get(BASELINES))
    results = with_classifier_baselines(measured, baselines)
    of_paper = {path.rpartition("/")[0] for path, cell in metrics.items() if cell_protocol(cell).name == "paper"}
    drawn = {path: curve for path, curve in curves.items() if path.rpartition("/")[0] in of_paper}
    joined = {benchmark: pd.concat(frames, ignore_index=True) for benchmark, frames in by_benchmark(drawn).items()}
    by_hand = {path.partition("/")[0]: table for path, table in hand_crafted.items()}
    tables = {
        "map_of_all_methods": all_methods_table(results, compared),
        "hand_crafted_against_cnn": features_table(results, by_hand, compared),
        "map_against_bits": code_lengths_table(results, compared, CODE_LENGTHS),
        CURVES: precision_recall_table(joined, compared),
        "unseen_classes": unseen_table(results, names, CODE_LENGTHS),
    }
    for name in former.keys() & tables.keys():
        keep = with_stored_curves if name == CURVES else with_stored_metrics
        tables[name] = keep(tables[name], former[name])
    written: dict[str, Any] = {f"{BASELINES}_rows": baselines}
    for name, table in tables.items():
        written[f"{name}_rows"] = for_readers(table)
        written[f"{name}_page"] = _page(name, table, results, names[CLASSIFIER_BASELINE.method])
    written["map_against_bits_figure"] = paper_figure_map(tables["map_against_bits"], compared)
    written[f"{CURVES}_figure"] = paper_figure_precision_recall(tables[CURVES], compared, SHOWN_CODE_LENGTH)
    return written


def _page(name: str, table: pd.DataFrame, results: Results, classifier: str) -> str:
    if name == CURVES:
        return precision_recall_page(TITLES[name], for_readers(table), results)
    if name == "unseen_classes":
        return unseen_page(TITLES[name], table, results, classifier)
    beside = f"[{TITLES['map_of_all_methods']}](map_of_all_methods.md)" if name == "map_against_bits" else None
    return compared_page(TITLES[name], table, results, beside=beside)


def by_benchmark(files: Mapping[str, Content]) -> dict[str, list[Content]]:
    """Sort ``<benchmark>/<method>/b<bits>/<file>`` by benchmark: methods of the paper's tables."""
    sorted_files: dict[str, list[Content]] = {}
    for path, content in files.items():
        benchmark, method, *_ = path.split("/")
        if method in PAPER_METHODS:
            sorted_files.setdefault(benchmark, []).append(content)
    return sorted_files
