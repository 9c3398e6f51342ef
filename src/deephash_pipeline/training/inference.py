"""A trained network over a whole set of inputs."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from .inputs import Inputs

BLOCK = 512


def outputs_in_blocks(module: nn.Module, inputs: Inputs) -> NDArray[np.float32]:
    """Apply `module` in evaluation mode, without gradients and without augmentation.

    Returns:
        float32 of shape (samples, outputs).
    """
    module.eval()
    blocks = []
    with torch.inference_mode():
        for start in range(0, len(inputs), BLOCK):
            indices = np.arange(start, min(start + BLOCK, len(inputs)))
            blocks.append(module(inputs.batch(indices)).cpu().numpy())
    return np.concatenate(blocks)
