"""z = phi(x): the neuron responses right below the hash layer, which every baseline is fed with."""

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.deephash.pretrain import extract_features


def create_pipeline() -> Pipeline:
    """{training, validation, query}_images, trunk_weights -> {training, validation, query}_z."""
    return Pipeline(
        [
            Node(
                extract_features,
                inputs=[f"{split}_images", "pixel_statistics", "trunk_weights", "params:experiment"],
                outputs=f"{split}_z",
                name=f"extract_{split}_z",
            )
            for split in ("training", "validation", "query")
        ]
    )
