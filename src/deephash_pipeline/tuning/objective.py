"""What a trial is judged by: validation images that search other validation images, both unseen in training."""

from dataclasses import dataclass

import numpy as np

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash.training_set import LabelledImages, TrainingSet
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.images.splits import stratified_draw
from deephash_pipeline.networks import HashNetwork
from deephash_pipeline.retrieval import count_distances, mean_average_precision, pack_bits
from deephash_pipeline.training import outputs_in_blocks
from deephash_pipeline.tuning.space import SCORE


def halves(validation_set: LabelledImages, seed: int) -> tuple[LabelledImages, LabelledImages]:
    """Split the validation images, class by class, into those that ask and those that are searched.

    Raises:
        InputError: there are too few of them.

    Example:
        >>> images = LabelledImages(np.zeros((6, 1, 28, 28), np.uint8), np.array([0, 0, 0, 0, 1, 1]))
        >>> [part.labels.tolist() for part in halves(images, seed=0)]
        [[0, 0, 1], [0, 0, 1]]
    """
    labels = validation_set.labels
    asking = stratified_draw(labels, len(labels) // 2, seed)
    searched = np.setdiff1d(np.arange(len(labels)), asking, assume_unique=True)
    if not len(asking) or not np.isin(labels[asking], labels[searched]).any():
        raise InputError(
            f"tuning needs validation images, two of a class at least, and there are {len(labels)}: "
            "set data_ingestion.validation_share or training_count"
        )
    return tuple(LabelledImages(validation_set.images[rows], labels[rows]) for rows in (asking, searched))  # type: ignore[return-value]


@dataclass(frozen=True)
class HeldOutScore:
    """Tie-aware mAP of one half of the validation images against the other.

    Attributes:
        asking: images that ask.
        searched: images that are searched.
        training_set: whose pixel statistics images are normalised by.
    """

    asking: LabelledImages
    searched: LabelledImages
    training_set: TrainingSet

    def __call__(self, network: HashNetwork) -> dict[str, float]:
        """Measure a network where it is, in evaluation mode."""
        asking, searched = (self._codes(network, images) for images in (self.asking, self.searched))
        bits = network.hash_layer.linear_code().threshold.shape[0]
        histograms = count_distances(asking, self.asking.labels, searched, self.searched.labels, bits)
        return {SCORE: mean_average_precision(histograms)}

    def _codes(self, network: HashNetwork, images: LabelledImages) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        device = next(network.parameters()).device
        inputs = ImageInputs(images.images, self.training_set.statistics, device, size=network.trunk.image_size)
        return pack_bits(outputs_in_blocks(network, inputs) >= 0)
