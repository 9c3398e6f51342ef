"""Beside the stages: a table of the cells that were run."""

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.pipelines.measured_cells.nodes import tabulate_measured_cells


def create_pipeline() -> Pipeline:
    """evaluated_cells (those that are there) -> tabulate_measured_cells -> measured_cells_table."""
    return Pipeline(
        [
            Node(
                tabulate_measured_cells,
                inputs="evaluated_cells",
                outputs="measured_cells_table",
                name="tabulate_measured_cells",
            )
        ]
    )
