"""Descriptors that no network has learned, in z's place: GIST or a bag of dense SIFT."""

from typing import Literal

from deephash_pipeline.common.parameters import Parameters
from deephash_pipeline.images.descriptors.gist import GistParameters
from deephash_pipeline.images.descriptors.sift_bag import SiftBagParameters

DESCRIPTORS = {"gist": "GIST", "sift_bag": "dense SIFT bag"}
"""Descriptor -> name in tables."""


class HandCraftedParameters(Parameters):
    """Which features are to stand in z's place.

    Attributes:
        descriptor: a key of `DESCRIPTORS`; the paper takes ``gist`` for CIFAR-10 and ``sift_bag`` for SUN397.
        gist: blocks and filters.
        sift_bag: grid, patches and vocabulary.
    """

    descriptor: Literal["gist", "sift_bag"] = "gist"
    gist: GistParameters = GistParameters()
    sift_bag: SiftBagParameters = SiftBagParameters()
