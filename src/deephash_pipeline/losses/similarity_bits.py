"""A code in two parts: the first bits keep the similarities of given features, the others minimise a hashing loss.

A loss of labels makes codes of the classes it was shown: whatever does not tell these apart is dropped, and classes
never seen fall together. Bits that keep how similar a network found two images before fine-tuning tell more of those
apart. Given to separate bits the two aims hardly disturb each other, as a weighted sum of both on all bits does.
"""

import math
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat
from torch import Tensor, nn

from deephash_pipeline.losses.hashing_loss import HashingLoss, at_least_float32

LARGEST_COSINE = 1 - 1e-6
"""The angle of equal features is not computed from rounding errors."""


class SimilarityParameters(BaseModel):
    """How much of a code keeps the similarities that pre-training has found.

    Attributes:
        share: share of the bits, the first of the code; 0 for none, the paper's.
        of: features that images are compared by: ``z``, or the ``logits`` of the softmax layer over it.
        weight: weight of the similarities, beside the loss of the other bits.

    Example:
        >>> SimilarityParameters(share=0.5).bits_of(48)
        24
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    share: float = Field(default=0.0, ge=0, lt=1)
    of: Literal["z", "logits"] = "z"
    weight: PositiveFloat = 3.0

    def bits_of(self, code_length: int) -> int:
        """Count the bits that keep similarities: at least one, unless `share` is 0, and one less than all at most."""
        return min(max(1, round(self.share * code_length)), code_length - 1) if self.share else 0


class SimilarityBits(nn.Module):
    """A loss on the last bits, and on the first weight K mean_ij (h_i . h_j / K - s_ij)^2 over pairs of two images.

    h = tanh(u / 2), the squashing of the paper's surrogate, K the number of the first bits, and
    s_ij = 1 - 2 angle(x_i, x_j) / pi with features x less their mean: the code product that hyperplanes drawn at random
    through the mean have on average (Charikar 2002), so one that codes can have. Metrics: those of the loss, and
    ``similarity_error``, the mean without its factor.

    Args:
        loss: loss on u alone.
        features: x of the training set, floating, shape (samples, dimension).
        bits: number of the first bits, less than the code length.
        weight: weight of the similarities.

    Example:
        >>> from deephash_pipeline.losses import ExponentiatedLoss
        >>> loss = SimilarityBits(ExponentiatedLoss(), torch.eye(3), bits=2, weight=1.0)
        >>> loss.set_batch(torch.tensor([2, 0]))
        >>> value = loss(torch.tensor([[9.0, 9.0, 1.0], [-9.0, 9.0, 1.0]]), torch.tensor([0, 0]))
        >>> print(f"{loss.metrics['similarity_error']:.4f}")
        0.1111
    """

    features: Tensor
    loss: HashingLoss
    metrics: dict[str, Tensor]

    def __init__(self, loss: HashingLoss, features: Tensor, bits: int, weight: float) -> None:
        super().__init__()
        self.loss, self.bits, self.weight = loss, bits, weight
        directions = nn.functional.normalize(features - features.mean(0), dim=1)
        self.register_buffer("features", directions, persistent=False)
        self.metrics = {}
        self._batch = torch.empty(0, dtype=torch.int64)

    def set_batch(self, indices: Tensor) -> None:
        """Take which images the next batch consists of, int64 (batch,)."""
        self._batch = indices

    def set_progress(self, progress: float) -> None:
        """Tell the loss, if it changes in the course of training."""
        follow = getattr(self.loss, "set_progress", None)
        if follow is not None:
            follow(progress)

    def forward(self, u: Tensor, labels: Tensor) -> Tensor:
        """Compute both for a batch; in float32 at least, also under ``torch.autocast``.

        Args:
            u: floating, shape (batch, code_length).
            labels: labels, as the loss takes them.
        """
        with torch.autocast(u.device.type, enabled=False):
            code = torch.tanh(at_least_float32(u[:, : self.bits]) / 2)
            directions = self.features[self._batch]
            cosines = (directions @ directions.T).clamp(-LARGEST_COSINE, LARGEST_COSINE)
            errors = code @ code.T / self.bits - (1 - 2 / math.pi * cosines.acos())
        itself = torch.eye(len(u), dtype=torch.bool, device=u.device)
        error = errors.square().masked_fill(itself, 0).sum() / max(1, len(u) * (len(u) - 1))
        loss: Tensor = self.loss(u[:, self.bits :], labels)
        self.metrics = {**self.loss.metrics, "similarity_error": error.detach()}
        return loss + self.weight * self.bits * error
