"""Beside the stages: tables and a page of the cells that were run."""

from kedro.pipeline import Pipeline

from deephash_pipeline.pipelines.grid import NAMES_OF_ALL
from deephash_pipeline.pipelines.measured_cells.nodes import report_measured_cells
from deephash_pipeline.pipelines.shared.bundles import node


def create_pipeline() -> Pipeline:
    """evaluated_cells (those that are there) -> measured_cells_table, map_table and report of measured_cells."""
    return Pipeline(
        [
            node(
                report_measured_cells,
                ["evaluated_cells", NAMES_OF_ALL, "params:reporting", "params:experiment"],
                ["measured_cells_table", "measured_cells.map_table", "measured_cells.report"],
            )
        ]
    )
