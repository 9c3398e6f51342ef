"""Raw images -> training set, validation set and queries, as arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.images.collection import ImageCollection
from deephash_pipeline.images.splits import SplitParameters, split_collection
from deephash_pipeline.images.statistics import pixel_statistics
from deephash_pipeline.pipelines.experiment import ExperimentParameters


def split_images(
    raw_images: ImageCollection, parameters: SplitParameters, experiment: ExperimentParameters
) -> dict[str, Any]:
    """Split a collection into disjoint sets.

    Returns:
        ``<split>_images`` uint8 (n, channels, height, width), ``<split>_labels`` int64 (n,) and ``<split>_ids`` for the
        splits training, validation and query, and ``class_names``.
    """
    artefacts: dict[str, Any] = {"class_names": raw_images.class_names}
    for split, image_set in split_collection(raw_images, parameters, experiment.seed).items():
        artefacts[f"{split}_images"] = image_set.images
        artefacts[f"{split}_labels"] = image_set.labels
        artefacts[f"{split}_ids"] = image_set.ids
    return artefacts


def measure_pixels(training_images: NDArray[np.uint8]) -> dict[str, list[float]]:
    """Mean and standard deviation of each channel over the training images, the only ones that may be looked at."""
    return pixel_statistics(training_images)
