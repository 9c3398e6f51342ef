"""The step that both hash-layer stages end with: the training histories of all cells in one table."""

from collections.abc import Iterable

import pandas as pd
from kedro.pipeline import Node

from deephash_pipeline.grid import Cell


def join_histories(*histories: pd.DataFrame) -> pd.DataFrame:
    """Stack tables with a row for each epoch."""
    return pd.concat(histories, ignore_index=True)


def joining_node(cells: Iterable[Cell], output: str) -> Node:
    """Make the node that joins the histories of `cells`."""
    inputs = [f"{cell.namespace}.history" for cell in cells]
    return Node(join_histories, inputs=inputs, outputs=output, name="join_histories")
