"""The metrics of the cells that were run, whichever they are."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from deephash_pipeline.grid import METHODS
from deephash_pipeline.reports import metrics_table


def tabulate_measured_cells(evaluated_cells: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Lay out all metrics, a row for each cell.

    Args:
        evaluated_cells: metrics of cells, as many as there are, by their files' names.

    Raises:
        InputError: no cell was evaluated.
    """
    # Those on hand-crafted descriptors have a table of their own.
    return metrics_table([cell for cell in evaluated_cells.values() if cell["method"] in METHODS], METHODS)
