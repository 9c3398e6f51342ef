"""Rank the database for every query."""

from collections.abc import Sequence

from kedro.pipeline import Pipeline

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.pipelines.evaluation.nodes import collect_metrics, join_curves
from deephash_pipeline.pipelines.shared.bundles import node, of_cell
from deephash_pipeline.pipelines.shared.measuring import measuring_node


def create_pipeline(grid: Sequence[Cell]) -> Pipeline:
    """Instantiate the template once for every cell of the grid.

    ::

        codes, labels -> measure -> <cell>.metrics, <cell>.curves
    """
    template = Pipeline([measuring_node()])
    return Pipeline([of_cell(template, cell) for cell in grid])


def create_joining(grid: Sequence[Cell], prefix: str) -> Pipeline:
    """Join the metrics and the curves of all cells of a grid.

    ::

        <cell>.metrics -> collect_metrics -> all_metrics; <cell>.curves -> join_curves -> precision_recall_curves

    Args:
        grid: the cells, in their order.
        prefix: stands before the names of what is made, such as ``field.``.
    """
    metrics = [f"{cell.namespace}.metrics" for cell in grid]
    curves = [f"{cell.namespace}.curves" for cell in grid]
    return Pipeline(
        [
            node(collect_metrics, metrics, f"{prefix}all_metrics"),
            node(join_curves, curves, f"{prefix}precision_recall_curves"),
        ]
    )
