"""Decode the images."""

from kedro.pipeline import Pipeline

from deephash_pipeline.pipelines.data_ingestion.nodes import measure_pixels, split_images
from deephash_pipeline.pipelines.shared.bundles import node

SPLITS = ("training", "validation", "query")


def create_pipeline() -> Pipeline:
    """raw_images -> split_images -> {training, validation, query}_{images, labels, ids} -> measure_pixels.

    split_images -> quarantined_images: what it could not decode.
    """
    arrays = [f"{split}_{kind}" for split in SPLITS for kind in ("images", "labels", "ids")]
    return Pipeline(
        [
            node(
                split_images,
                ["raw_images", "decoded_images", "params:data_ingestion", "params:protocol", "params:experiment.seed"],
                {name: name for name in ["class_names", "quarantined_images", *arrays]},
            ),
            node(measure_pixels, ["training_images", "params:experiment"], "pixel_statistics"),
        ]
    )
