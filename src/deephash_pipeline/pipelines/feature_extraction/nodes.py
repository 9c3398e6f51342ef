"""z = phi(x): the neuron responses right below the hash layer, which every baseline is fed with."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.pipelines.experiment import ExperimentParameters, trunk_for
from deephash_pipeline.training import outputs_in_blocks, resolve_device


def extract_z(
    images: NDArray[np.uint8],
    pixel_statistics: Mapping[str, list[float]],
    trunk_weights: Mapping[str, Tensor],
    experiment: ExperimentParameters,
) -> NDArray[np.float32]:
    """Compute z of shape (n, z_dimension) for images, without augmentation; of too large ones, the centre counts."""
    device = resolve_device(experiment.device)
    trunk = trunk_for(images, experiment)
    trunk.load_state_dict(trunk_weights)
    if not len(images):
        return np.empty((0, trunk.z_dimension), dtype=np.float32)
    return outputs_in_blocks(trunk.to(device), ImageInputs(images, pixel_statistics, device, size=trunk.image_size))
