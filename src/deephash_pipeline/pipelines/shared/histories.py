"""Training histories: whose they are, and those of all cells in one table."""

from collections.abc import Iterable

import pandas as pd
from kedro.pipeline import Node

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.deephash.experiment import Run
from deephash_pipeline.pipelines.shared.bundles import node


def of_cell(history: pd.DataFrame, run: Run, stage: str) -> pd.DataFrame:
    """Add the columns `method`, `code_length` and `stage` to a table with a row for each epoch."""
    return history.assign(method=run.cell.method, code_length=run.cell.code_length, stage=stage)


def join_histories(*histories: pd.DataFrame) -> pd.DataFrame:
    """Stack tables with a row for each epoch."""
    return pd.concat(histories, ignore_index=True)


def joining_node(cells: Iterable[Cell], output: str) -> Node:
    """Make the node that joins the histories of `cells`."""
    return node(join_histories, [f"{cell.namespace}.history" for cell in cells], output)
