"""Stage 7: rank the database for every query."""

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.grid import cells

from .nodes import count_query_distances, measure_retrieval


def create_pipeline() -> Pipeline:
    """Instantiate the template once for every cell.

    ::

        query_codes, database_codes -> count_distances -> query_histograms -> measure -> metrics, curves
    """
    template = Pipeline(
        [
            Node(
                count_query_distances,
                inputs=["query_codes", "query_labels", "database_codes", "training_labels", "encoder"],
                outputs="query_histograms",
                name="count_distances",
            ),
            Node(
                measure_retrieval,
                inputs=[
                    "query_histograms",
                    "query_labels",
                    "validation_codes",
                    "validation_labels",
                    "database_codes",
                    "training_labels",
                    "params:cell",
                    "encoder",
                ],
                outputs=["metrics", "curves"],
                name="measure",
            ),
        ]
    )
    codes = ("encoder", "database_codes", "validation_codes", "query_codes")
    return Pipeline(
        [
            Pipeline(
                template,
                namespace=cell.namespace,
                inputs={
                    **{name: name for name in ("training_labels", "validation_labels", "query_labels")},
                    **{name: f"{cell.namespace}.{name}" for name in codes},
                },
                parameters={"params:cell": f"params:cells.{cell.namespace}"},
            )
            for cell in cells()
        ]
    )
