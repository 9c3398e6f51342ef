"""Descriptors that no network has learned, in z's place."""

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.devices import resolve_device
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.deephash.experiment import Experiment
from deephash_pipeline.images.descriptors import hand_crafted
from deephash_pipeline.images.descriptors.hand_crafted import HandCraftedParameters


def learn_vocabulary(
    training_images: NDArray[np.uint8], parameters: HandCraftedParameters, experiment: Experiment
) -> NDArray[np.float32]:
    """Learn the words of the training images, shape (words, 128); none if the descriptor has no use for them."""
    return hand_crafted.learn_vocabulary(training_images, parameters, derive_seed(experiment.seed, "sift vocabulary"))


def describe_images(
    images: NDArray[np.uint8],
    sift_vocabulary: NDArray[np.float32],
    parameters: HandCraftedParameters,
    experiment: Experiment,
) -> NDArray[np.float32]:
    """Compute the descriptor of each image, shape (n, features), from images as they are."""
    return hand_crafted.describe_images(images, sift_vocabulary, parameters, resolve_device(experiment.device))
