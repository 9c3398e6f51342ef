"""Descriptors that no network has learned, in z's place: GIST or a bag of dense SIFT."""

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from deephash_pipeline.images.descriptors.gist import GistParameters, gist
from deephash_pipeline.images.descriptors.sift_bag import DIMENSION, SiftBagParameters, bag_of_words, fit_vocabulary

DESCRIPTORS = {"gist": "GIST", "sift_bag": "dense SIFT bag"}
"""Descriptor -> name in tables."""


class HandCraftedParameters(BaseModel):
    """Which features are to stand in z's place.

    Attributes:
        descriptor: a key of `DESCRIPTORS`; the paper takes ``gist`` for CIFAR-10 and ``sift_bag`` for SUN397.
        gist: blocks and filters.
        sift_bag: grid, patches and vocabulary.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    descriptor: Literal["gist", "sift_bag"] = "gist"
    gist: GistParameters = GistParameters()
    sift_bag: SiftBagParameters = SiftBagParameters()


def learn_vocabulary(
    training_images: NDArray[np.uint8], parameters: HandCraftedParameters, seed: int
) -> NDArray[np.float32]:
    """Learn the words of the training images, shape (words, 128); there are none if the descriptor has no use for them.

    Raises:
        InputError: the images are too small for the patches, or give fewer descriptors than words.
    """
    if parameters.descriptor == "gist":
        return np.empty((0, DIMENSION), dtype=np.float32)
    return fit_vocabulary(training_images, parameters.sift_bag, seed)


def describe_images(
    images: NDArray[np.uint8],
    sift_vocabulary: NDArray[np.float32],
    parameters: HandCraftedParameters,
    device: torch.device,
) -> NDArray[np.float32]:
    """Compute the descriptor of each image, shape (n, features), from images as they are.

    Raises:
        InputError: the images do not suit the descriptor, or the vocabulary is not one of these parameters.
    """
    if parameters.descriptor == "gist":
        return gist(images, parameters.gist, device)
    return bag_of_words(images, sift_vocabulary, parameters.sift_bag, device)
