"""Codes of a database many times as large as the benchmark's: its training images, moved about, through trained models.

Random bits would make a poor stand-in for a large database: codes of images lie in clumps, and many are equal.
"""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from deephash_pipeline.hashing import Encoder
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.progress import track
from deephash_pipeline.randomness import derive_seed
from deephash_pipeline.retrieval import pack_bits
from deephash_pipeline.training import outputs_in_blocks


def augmented_codes(
    inputs: ImageInputs, trunk: nn.Module, encoder: Encoder, seed: int, versions: int
) -> NDArray[np.uint8]:
    """Encode `versions` augmented versions of every image, each moved by draws of its own.

    Args:
        inputs: the n images and how they are augmented.
        trunk: maps images to z.
        encoder: maps z to bits.
        seed: of all draws; equal seeds move images alike, whatever the trunk.
        versions: of each image.

    Returns:
        Packed codes of shape (versions * n, bytes), version after version.
    """
    codes = []
    for version in track(range(versions), "encoding augmented images", versions):
        moved = AugmentedVersion(inputs, derive_seed(seed, "augmented codes", version))
        codes.append(pack_bits(encoder.transform(outputs_in_blocks(trunk, moved))))
    return np.concatenate(codes)


class AugmentedVersion:
    """Images as network inputs, each moved by one draw that depends on the seed and its block alone."""

    def __init__(self, inputs: ImageInputs, seed: int) -> None:
        self.inputs = inputs
        self.seed = seed

    def __len__(self) -> int:
        return len(self.inputs)

    def batch(self, indices: NDArray[np.int64], seed: int | None = None, first: int = 0) -> Tensor:
        """Moved images at `indices`, normalised."""
        return self.inputs.batch(indices, derive_seed(self.seed, int(indices[0])))
