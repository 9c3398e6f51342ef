"""z = phi(x): the neuron responses right below the hash layer, which every baseline is fed with."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.deephash.experiment import Experiment
from deephash_pipeline.deephash.pretrain import extract_features


def extract_z(
    images: NDArray[np.uint8],
    pixel_statistics: Mapping[str, list[float]],
    trunk_weights: Mapping[str, Tensor],
    experiment: Experiment,
) -> NDArray[np.float32]:
    """Compute z of shape (n, z_dimension) for images, without augmentation."""
    return extract_features(images, pixel_statistics, trunk_weights, experiment)
