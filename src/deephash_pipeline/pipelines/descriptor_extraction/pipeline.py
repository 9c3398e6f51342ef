"""Hand-crafted features of every image; not part of the full pipeline."""

from kedro.pipeline import Pipeline

from deephash_pipeline.pipelines.descriptor_extraction.nodes import describe_images, learn_vocabulary
from deephash_pipeline.pipelines.shared.bundles import node


def create_pipeline() -> Pipeline:
    """training_images -> sift_vocabulary; {split}_images, sift_vocabulary -> {split}_descriptor."""
    return Pipeline(
        [
            node(learn_vocabulary, ["training_images", "params:hand_crafted", "params:experiment"], "sift_vocabulary"),
            *(
                node(
                    describe_images,
                    [f"{split}_images", "sift_vocabulary", "params:hand_crafted", "params:experiment"],
                    f"{split}_descriptor",
                    f"describe_{split}_images",
                )
                for split in ("training", "validation", "query")
            ),
        ]
    )
