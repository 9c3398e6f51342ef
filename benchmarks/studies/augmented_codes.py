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


class MovedImages(ImageInputs):
    """Images as network inputs, each moved by one draw that depends on the seed of the version and its block alone."""

    version_seed = 0

    def batch(self, indices: NDArray[np.int64], seed: int | None = None, first: int = 0) -> Tensor:
        """Moved images at `indices`, normalised."""
        return super().batch(indices, derive_seed(self.version_seed, int(indices[0])))


def augmented_codes(
    images: MovedImages, trunk: nn.Module, encoder: Encoder, seed: int, versions: int
) -> NDArray[np.uint8]:
    """Encode `versions` augmented versions of n images: packed codes (versions * n, bytes), version after version."""
    codes = []
    for version in track(range(versions), "encoding augmented images", versions):
        images.version_seed = derive_seed(seed, "augmented codes", version)
        codes.append(pack_bits(encoder.encode(outputs_in_blocks(trunk, images))))
    return np.concatenate(codes)
