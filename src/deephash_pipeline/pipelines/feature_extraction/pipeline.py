"""z = phi(x): the neuron responses right below the hash layer, which every baseline is fed with."""

from kedro.pipeline import Pipeline

from deephash_pipeline.deephash.pretrain import extract_features
from deephash_pipeline.pipelines.shared.bundles import node


def create_pipeline() -> Pipeline:
    """{training, validation, query}_images, trunk_weights -> {training, validation, query}_z."""
    return Pipeline(
        [
            node(
                extract_features,
                [f"{split}_images", "pixel_statistics", "trunk_weights", "params:experiment"],
                f"{split}_z",
                f"extract_{split}_z",
            )
            for split in ("training", "validation", "query")
        ]
    )
