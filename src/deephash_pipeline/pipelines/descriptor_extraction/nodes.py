"""Descriptors that no network has learned, in z's place."""

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.deephash.experiment import Experiment
from deephash_pipeline.images.descriptors.gist import gist
from deephash_pipeline.images.descriptors.hand_crafted import HandCraftedParameters
from deephash_pipeline.images.descriptors.sift_bag import DIMENSION, bag_of_words, fit_vocabulary


def learn_vocabulary(
    training_images: NDArray[np.uint8], parameters: HandCraftedParameters, experiment: Experiment
) -> NDArray[np.float32]:
    """Learn the words of the training images, shape (words, 128); none if the descriptor has no use for them.

    Raises:
        InputError: the images are too small for the patches, or give fewer descriptors than words.
    """
    if parameters.descriptor == "gist":
        return np.empty((0, DIMENSION), dtype=np.float32)
    return fit_vocabulary(training_images, parameters.sift_bag, derive_seed(experiment.seed, "sift vocabulary"))


def describe_images(
    images: NDArray[np.uint8],
    sift_vocabulary: NDArray[np.float32],
    parameters: HandCraftedParameters,
    experiment: Experiment,
) -> NDArray[np.float32]:
    """Compute the descriptor of each image, shape (n, features), from images as they are.

    Raises:
        InputError: the images do not suit the descriptor, or the vocabulary is not one of these parameters.
    """
    if parameters.descriptor == "gist":
        return gist(images, parameters.gist, experiment.torch_device)
    return bag_of_words(images, sift_vocabulary, parameters.sift_bag, experiment.torch_device)
