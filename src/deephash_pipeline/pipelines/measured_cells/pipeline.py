"""Beside the stages: tables and a page of the cells that were run."""

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.pipelines.grid import NAMES
from deephash_pipeline.pipelines.measured_cells.nodes import report_measured_cells


def create_pipeline() -> Pipeline:
    """evaluated_cells (those that are there) -> measured_cells_table, map_table and report of measured_cells."""
    return Pipeline(
        [
            Node(
                report_measured_cells,
                inputs=["evaluated_cells", NAMES, "params:reporting", "params:experiment"],
                outputs=["measured_cells_table", "measured_cells.map_table", "measured_cells.report"],
                name="report_measured_cells",
            )
        ]
    )
