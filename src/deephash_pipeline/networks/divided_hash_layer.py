"""The divide-and-encode module of DNNH (Lai et al., CVPR 2015), as a hash layer."""

import torch
from torch import Tensor, nn

from deephash_pipeline.networks.hash_layer import HashLayer


class DividedHashLayer(HashLayer):
    """z -> `features_per_bit` linear features for each bit -> that bit's u, a combination of its own features alone.

    Nothing bends between the two steps, so together they are one w_k for each bit and are computed as such; it is the
    path of training that differs. Sigmoid and threshold come after, in the loss; they move no sign.

    Example:
        >>> from deephash_pipeline.networks import HashLayerParameters
        >>> layer = DividedHashLayer(500, 48, HashLayerParameters(features_per_bit=50), seed=0)
        >>> layer(torch.zeros(2, 500)).shape
        torch.Size([2, 48])
    """

    def _draw_weights(self, z_dimension: int, code_length: int, generator: torch.Generator) -> None:
        features = self.parameters_.features_per_bit
        assert features is not None, "only layers that have it are divided"
        drawn = torch.randn(code_length, features, z_dimension, generator=generator)
        self.features = nn.Parameter(drawn / z_dimension**0.5)
        self.slices = nn.Parameter(torch.randn(code_length, features, generator=generator) / features**0.5)

    def directions(self) -> Tensor:
        """w_k as rows, shape (code_length, z_dimension)."""
        return torch.einsum("kf,kfd->kd", self.slices, self.features)

    def _shrink(self, divisors: Tensor) -> None:
        self.slices.div_(divisors[:, None])
