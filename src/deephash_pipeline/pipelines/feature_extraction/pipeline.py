"""Features of every image."""

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.pipelines.feature_extraction.nodes import extract_z


def create_pipeline() -> Pipeline:
    """{training, validation, query}_images, trunk_weights -> {training, validation, query}_z."""
    return Pipeline(
        [
            Node(
                extract_z,
                inputs=[f"{split}_images", "pixel_statistics", "trunk_weights", "params:experiment"],
                outputs=f"{split}_z",
                name=f"extract_{split}_z",
            )
            for split in ("training", "validation", "query")
        ]
    )
