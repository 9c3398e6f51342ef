"""Rank the database for every query."""

from collections.abc import Sequence

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.pipelines.evaluation.nodes import collect_metrics, join_curves
from deephash_pipeline.pipelines.shared.measuring import measuring_nodes


def create_pipeline(grid: Sequence[Cell]) -> Pipeline:
    """Instantiate the template once for every cell of the grid.

    ::

        codes, labels -> count_distances -> query_histograms -> measure -> <cell>.metrics, <cell>.curves
        <cell>.metrics -> collect_metrics -> all_metrics; <cell>.curves -> join_curves -> precision_recall_curves
    """
    template = Pipeline(measuring_nodes())
    instances = [
        Pipeline(
            template,
            namespace=cell.namespace,
            inputs={
                "codes": f"{cell.namespace}.codes",
                **{name: name for name in ("training_labels", "validation_labels", "query_labels")},
            },
            parameters={"params:cell": f"params:{cell.parameter}", "params:protocol": "params:protocol"},
        )
        for cell in grid
    ]
    metrics = [f"{cell.namespace}.metrics" for cell in grid]
    curves = [f"{cell.namespace}.curves" for cell in grid]
    return Pipeline(
        [
            *instances,
            Node(collect_metrics, inputs=metrics, outputs="all_metrics", name="collect_metrics"),
            Node(join_curves, inputs=curves, outputs="precision_recall_curves", name="join_curves"),
        ]
    )
