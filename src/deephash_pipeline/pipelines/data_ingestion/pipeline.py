"""Decode the images."""

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.pipelines.data_ingestion.nodes import measure_pixels, split_images

SPLITS = ("training", "validation", "query")


def create_pipeline() -> Pipeline:
    """raw_images -> split_images -> {training, validation, query}_{images, labels, ids} -> measure_pixels.

    split_images -> quarantined_images: what it could not decode.
    """
    arrays = [f"{split}_{kind}" for split in SPLITS for kind in ("images", "labels", "ids")]
    return Pipeline(
        [
            Node(
                split_images,
                inputs=[
                    "raw_images",
                    "decoded_images",
                    "params:data_ingestion",
                    "params:protocol",
                    "params:experiment.seed",
                ],
                outputs={name: name for name in ["class_names", "quarantined_images", *arrays]},
                name="split_images",
            ),
            Node(
                measure_pixels,
                inputs=["training_images", "params:experiment"],
                outputs="pixel_statistics",
                name="measure_pixels",
            ),
        ]
    )
