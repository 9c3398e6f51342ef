"""The hash layer u_k = w_k' z, whose signs are the code (Eqn 2), and the networks of Figure 1 around it."""

from typing import NamedTuple, Self

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from deephash_pipeline.common.parameters import Parameters
from deephash_pipeline.networks.classification_head import ClassificationHead
from deephash_pipeline.networks.trunk import Trunk


class HashLayerParameters(Parameters):
    """How u is made from w'z. The defaults are the paper's; each field is a named departure from it.

    Attributes:
        centring: subtract from w_k'z its mean over the batch (the running mean when encoding): bits are balanced.
        scale: divide by the standard deviation over the batch and multiply by this number, so that u neither dies nor
            saturates in sigma(u_i u_j). None leaves the scale to w.
        bias: True to learn a threshold for each bit. Redundant with `centring`.
        momentum: weight of the newest batch in the running mean and deviation.
        features_per_bit: number of features of z from which alone a bit is made: DNNH's divide-and-encode module. None
            for w_k' z.

    Example:
        >>> HashLayerParameters(centring=True, scale=1.5).momentum
        0.1
    """

    centring: bool = False
    scale: float | None = Field(default=None, gt=0)
    bias: bool = False
    momentum: float = Field(default=0.1, gt=0, le=1)
    features_per_bit: PositiveInt | None = None


class LinearCode(NamedTuple):
    """What the hash layer comes to when encoding: bit k of z is [z @ projection >= threshold]_k.

    Example:
        >>> code = HashLayer(500, 48, HashLayerParameters(), seed=0).linear_code()
        >>> code.projection.shape, code.threshold.shape
        (torch.Size([500, 48]), torch.Size([48]))
    """

    projection: Tensor
    threshold: Tensor


class HashLayer(nn.Module):
    """Maps z of shape (batch, z_dimension) to u of shape (batch, code_length): u_k = w_k' z (Eqn 2).

    Dividing by a positive deviation and multiplying by a positive scale move no sign: whatever the departures, the code
    stays sign(w'z - threshold).

    Args:
        z_dimension: length of z.
        code_length: number of bits, K.
        parameters: departures from w_k' z.
        seed: seed of the weights.

    Example:
        >>> layer = HashLayer(500, 48, HashLayerParameters(), seed=0)
        >>> layer(torch.zeros(2, 500)).shape
        torch.Size([2, 48])
    """

    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, z_dimension: int, code_length: int, parameters: HashLayerParameters, seed: int) -> None:
        super().__init__()
        self.parameters_ = parameters
        self._draw_weights(z_dimension, code_length, torch.Generator().manual_seed(seed))
        self.bias = nn.Parameter(torch.zeros(code_length)) if parameters.bias else None
        self.register_buffer("running_mean", torch.zeros(code_length))
        self.register_buffer("running_variance", torch.ones(code_length))

    def _draw_weights(self, z_dimension: int, code_length: int, generator: torch.Generator) -> None:
        self.weight = nn.Parameter(torch.randn(code_length, z_dimension, generator=generator) / z_dimension**0.5)

    def directions(self) -> Tensor:
        """w_k as rows, shape (code_length, z_dimension)."""
        return self.weight

    def forward(self, z: Tensor) -> Tensor:
        """Compute u; in training mode the statistics are those of the batch, else the running ones."""
        u = nn.functional.linear(z, self.directions(), self.bias)
        if not (self.parameters_.centring or self.parameters_.scale):
            return u
        if self.training:
            mean, variance = u.mean(0), u.var(0, unbiased=False)
            with torch.no_grad():
                self.running_mean.lerp_(mean.detach(), self.parameters_.momentum)
                self.running_variance.lerp_(variance.detach(), self.parameters_.momentum)
        else:
            mean, variance = self.running_mean, self.running_variance
        if self.parameters_.centring:
            u = u - mean
        if self.parameters_.scale:
            u = u * (self.parameters_.scale * torch.rsqrt(variance + 1e-5))
        return u

    @torch.no_grad()
    def fit_scale(self, z: Tensor) -> None:
        """Start from data: set the running statistics from z, and w so that u has unit deviation on z.

        |u| near 0 is a saddle of sigma(u_i u_j), large |u| a plateau; both are dead starts.

        Args:
            z: float of shape (n, z_dimension).
        """
        self._shrink((z @ self.directions().T).std(0, unbiased=False).clamp_min(1e-12))
        u = nn.functional.linear(z, self.directions(), self.bias)
        self.running_mean.copy_(u.mean(0))
        self.running_variance.copy_(u.var(0, unbiased=False))

    def _shrink(self, divisors: Tensor) -> None:
        self.weight.div_(divisors[:, None])

    @torch.no_grad()
    def linear_code(self) -> LinearCode:
        """Reduce the layer to a projection (z_dimension, code_length) and a threshold (code_length,)."""
        threshold = torch.zeros_like(self.running_mean)
        if self.parameters_.centring:
            threshold = threshold + self.running_mean
        if self.bias is not None:
            threshold = threshold - self.bias
        return LinearCode(self.directions().T.clone(memory_format=torch.contiguous_format), threshold)


class SoftmaxNetwork(nn.Module):
    """Pre-training, stage 1 (Algorithm 1): the trunk under a softmax layer. Returns logits (batch, classes).

    Args:
        trunk: images -> z.
        classes: number of classes.

    Example:
        >>> from deephash_pipeline.networks import build_trunk
        >>> SoftmaxNetwork(build_trunk("lenet"), classes=10)(torch.zeros(2, 1, 28, 28)).shape
        torch.Size([2, 10])
    """

    def __init__(self, trunk: Trunk, classes: int) -> None:
        super().__init__()
        self.trunk = trunk
        self.softmax = nn.Linear(trunk.z_dimension, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Compute the logits of normalised images."""
        return self.head(self.trunk(images))

    def head(self, z: Tensor) -> Tensor:
        """Compute the logits of z, shape (batch, z_dimension)."""
        logits: Tensor = self.softmax(z)
        return logits


class HashSoftmaxNetwork(nn.Module):
    """Pre-training, stage 2: z -> hash layer -> tanh -> softmax layer. Returns logits (batch, classes).

    Without a squashing function between the two layers W would be free up to any invertible K x K matrix, and its
    signs would mean nothing; tanh(u/2) is the squashing of the loss's own surrogate.

    Args:
        hash_layer: z -> u.
        classes: number of classes.

    Example:
        >>> HashSoftmaxNetwork(HashLayer(500, 48, HashLayerParameters(), seed=0), 10)(torch.zeros(2, 500)).shape
        torch.Size([2, 10])
    """

    def __init__(self, hash_layer: HashLayer, classes: int) -> None:
        super().__init__()
        self.hash_layer = hash_layer
        self.softmax = nn.Linear(hash_layer.weight.shape[0], classes)

    def forward(self, z: Tensor) -> Tensor:
        """Compute the logits of z, shape (batch, z_dimension)."""
        logits: Tensor = self.softmax(torch.tanh(self.hash_layer(z) / 2))
        return logits


class HashNetwork(nn.Module):
    """Fine-tuning: trunk and hash layer, trained together on the hashing loss. Returns u (batch, code_length).

    A loss that classifies as well has its classification head here, so that it is trained and stored with the rest. A
    loss that compares codes with features has them from a trunk that is not trained.

    Args:
        trunk: images -> z.
        hash_layer: z -> u.
        classifier: classification head, of losses that have one.
        frozen_trunk: True to train the hash layer alone.
        gives_z: True to give z beside u.

    Example:
        >>> from deephash_pipeline.networks import build_trunk
        >>> hash_layer = HashLayer(500, 48, HashLayerParameters(), seed=0)
        >>> HashNetwork(build_trunk("lenet"), hash_layer)(torch.zeros(2, 1, 28, 28)).shape
        torch.Size([2, 48])
    """

    def __init__(
        self,
        trunk: Trunk,
        hash_layer: HashLayer,
        classifier: ClassificationHead | None = None,
        frozen_trunk: bool = False,
        gives_z: bool = False,
    ) -> None:
        super().__init__()
        self.trunk = trunk
        self.hash_layer = hash_layer
        self.classifier = classifier
        self.frozen_trunk = frozen_trunk
        self.gives_z = gives_z

    def train(self, mode: bool = True) -> Self:
        """Choose training or evaluation. A frozen trunk is always evaluated: batches would change its statistics."""
        super().train(mode)
        if self.frozen_trunk:
            self.trunk.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Compute u of normalised images."""
        u: Tensor = self.hash_layer(self.trunk(images))
        return u

    def head(self, z: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Compute u of z, shape (batch, z_dimension); beside it the logits of a classifier, or z where it is wanted."""
        if self.frozen_trunk:
            z = z.detach()
        u: Tensor = self.hash_layer(z)
        if self.gives_z:
            return u, z
        return u if self.classifier is None else (u, self.classifier(z, u))


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
