"""Hand-crafted features of every image; not part of the full pipeline."""

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.pipelines.descriptor_extraction.nodes import describe_images, learn_vocabulary


def create_pipeline() -> Pipeline:
    """training_images -> sift_vocabulary; {split}_images, sift_vocabulary -> {split}_descriptor."""
    return Pipeline(
        [
            Node(
                learn_vocabulary,
                inputs=["training_images", "params:hand_crafted", "params:experiment"],
                outputs="sift_vocabulary",
                name="learn_vocabulary",
            ),
            *(
                Node(
                    describe_images,
                    inputs=[f"{split}_images", "sift_vocabulary", "params:hand_crafted", "params:experiment"],
                    outputs=f"{split}_descriptor",
                    name=f"describe_{split}_images",
                )
                for split in ("training", "validation", "query")
            ),
        ]
    )
