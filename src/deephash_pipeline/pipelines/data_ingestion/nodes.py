"""Raw images -> training set, validation set and queries, as arrays."""

import logging
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from deephash_pipeline.common.working_place import WorkingPlace
from deephash_pipeline.deephash import Experiment
from deephash_pipeline.images.decoding.ingestion import BrokenImage, decode_splits
from deephash_pipeline.images.protocol_splits import split_by_protocol
from deephash_pipeline.images.sources.collection import ImageCollection
from deephash_pipeline.images.splits import SplitParameters, split_class_names
from deephash_pipeline.images.statistics import pixel_statistics
from deephash_pipeline.retrieval.protocols import require_protocol

logger = logging.getLogger(__name__)


class IngestionParameters(SplitParameters):
    """How to split a collection, and how much of it may be broken.

    Attributes:
        broken_share_limit: a run stops if a larger share of the image files than this is broken.
    """

    broken_share_limit: float = Field(default=0.01, ge=0, le=1)


def split_images(
    raw_images: ImageCollection, place: WorkingPlace, parameters: IngestionParameters, protocol: str, seed: int
) -> dict[str, Any]:
    """Split a collection into disjoint sets, as the protocol wants them, and decode them.

    Returns:
        ``<split>_images`` uint8 (n, channels, height, width), ``<split>_labels`` int64 (n,) and ``<split>_ids`` for the
        splits training, validation and query, ``class_names``, and ``quarantined_images``: split, id and reason of each
        broken image.
    """
    class_names = split_class_names(raw_images.class_names, parameters, seed)
    splits = split_by_protocol(raw_images, parameters, seed, require_protocol(protocol))
    decoded, broken = decode_splits(splits, class_names, parameters.broken_share_limit, place.path, place.provenance)
    quarantined = pd.DataFrame(broken, columns=list(BrokenImage._fields))
    artefacts: dict[str, Any] = {"class_names": class_names, "quarantined_images": quarantined}
    for split, image_set in decoded.items():
        artefacts |= {f"{split}_{kind}": content for kind, content in vars(image_set).items()}
    if broken:
        logger.warning(
            "%s left out, %s says which and why",
            "1 broken image is" if len(broken) == 1 else f"{len(broken)} broken images are",
            place.path.with_name("quarantined_images.csv"),
        )
    return artefacts


def measure_pixels(training_images: NDArray[np.uint8], experiment: Experiment) -> dict[str, list[float]]:
    """Mean and standard deviation of each channel over the training images, the only ones that may be looked at.

    A network whose weights were learned on other images keeps what they were normalised with.
    """
    measured = pixel_statistics(training_images)
    usual = experiment.usual_statistics
    # Grey images are repeated by the network, and normalised as one channel.
    return measured if usual is None else {name: usual[name][: len(values)] for name, values in measured.items()}
