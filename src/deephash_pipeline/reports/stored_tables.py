"""What the paper's tables keep of runs whose artefacts are not at hand: the values that they have already."""

import pandas as pd

from deephash_pipeline.reports.cells import CLASSIFIER_BASELINE, CellMetrics, classifier_baseline_cell
from deephash_pipeline.reports.paper.tables import Results

_KEYS = ["benchmark", "feature", "method", "code_length"]
_BASELINE_METRICS = ["code_length", "mean_average_precision", "queries", "database_size", "chance_level"]


def with_stored_metrics(table: pd.DataFrame, stored: pd.DataFrame) -> pd.DataFrame:
    """Fill what a table lacks from the table that it replaces.

    Rows that the table no longer has, of a method under another name for example, are left out.

    Args:
        table: the new one, with NaN where nothing was measured.
        stored: the former one as read from its CSV, with words there.

    Example:
        >>> import math
        >>> table = pd.DataFrame({"method": ["ITQ", "KSH"], "code_length": 12, "measured": [math.nan, 0.6]})
        >>> stored = pd.DataFrame({"method": ["ITQ", "KSH"], "code_length": 12, "measured": ["0.3446", "0.5"]})
        >>> with_stored_metrics(table, stored)["measured"].tolist()
        [0.3446, 0.6]
    """
    keys = [name for name in _KEYS if name in table]
    former = stored.set_index(keys)[["measured"]].apply(pd.to_numeric, errors="coerce")
    filled = table.set_index(keys)
    filled[["measured"]] = filled[["measured"]].fillna(former)
    if "difference" in filled:
        filled["difference"] = filled["measured"] - filled["published"]
    return filled.reset_index()[list(table)]


def classifier_baselines_table(results: Results, stored: pd.DataFrame | None = None) -> pd.DataFrame:
    """Give each benchmark's 1-of-C code, whose metrics say on what was measured there: from its run, else as stored.

    Args:
        results: metrics of the cells that were run.
        stored: the former table.

    Returns:
        Frame with columns `benchmark` (key), `method` and `_BASELINE_METRICS`.
    """
    cells = {} if stored is None else {str(row["benchmark"]): row for row in _records(stored)}
    measured = {benchmark: classifier_baseline_cell(of_benchmark) for benchmark, of_benchmark in results.items()}
    cells.update((benchmark, cell) for benchmark, cell in measured.items() if cell is not None)
    rows = [{**cell, "benchmark": benchmark} for benchmark, cell in sorted(cells.items())]
    return pd.DataFrame(rows, columns=["benchmark", "method", *_BASELINE_METRICS]).convert_dtypes()


def with_classifier_baselines(results: Results, table: pd.DataFrame) -> dict[str, list[CellMetrics]]:
    """Give every benchmark the 1-of-C code of the table in place of its own.

    Args:
        results: metrics of the cells that were run.
        table: table of `classifier_baselines_table`.
    """
    cells = {
        benchmark: [cell for cell in of_benchmark if cell["method"] != CLASSIFIER_BASELINE]
        for benchmark, of_benchmark in results.items()
    }
    for row in _records(table):
        cells.setdefault(str(row["benchmark"]), []).append(row)
    return cells


def _records(table: pd.DataFrame) -> list[CellMetrics]:
    return [{str(name): value for name, value in row.items() if pd.notna(value)} for row in table.to_dict("records")]
