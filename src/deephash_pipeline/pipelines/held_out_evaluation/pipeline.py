"""Beside the stages: search images that no training has seen."""

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.pipelines.held_out_evaluation.nodes import measure_held_out


def create_pipeline() -> Pipeline:
    """all_codes (those that are there), labels -> measure_held_out -> held_out_table."""
    return Pipeline(
        [
            Node(
                measure_held_out,
                inputs=["all_codes", "query_labels", "validation_labels", "training_labels"],
                outputs="held_out_table",
                name="measure_held_out",
            )
        ]
    )
