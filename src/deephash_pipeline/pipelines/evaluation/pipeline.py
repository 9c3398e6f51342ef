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
        <cell>.metrics -> collect_metrics -> all_metrics; <cell>.curves -> join_curves -> precision_recall_curves
    """
    template = Pipeline([measuring_node()])
    metrics = [f"{cell.namespace}.metrics" for cell in grid]
    curves = [f"{cell.namespace}.curves" for cell in grid]
    return Pipeline(
        [
            *(of_cell(template, cell) for cell in grid),
            node(collect_metrics, metrics, "all_metrics"),
            node(join_curves, curves, "precision_recall_curves"),
        ]
    )
