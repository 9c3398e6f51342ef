"""Losses of hash codes: modules that map the hash layer's output u and labels to a scalar, for any training loop.

>>> import torch
>>> from deephash_pipeline.losses import ExponentiatedLoss
>>> labels = torch.tensor([0, 0, 1, 1])
>>> u = torch.randn(4, 12, generator=torch.Generator().manual_seed(0), requires_grad=True)
>>> loss = ExponentiatedLoss(loss_scale="unit")
>>> loss(u, labels).backward()
>>> u.grad.shape, sorted(loss.metrics)
(torch.Size([4, 12]), ['saturated_share', 'true_loss', 'u_standard_deviation'])
"""

from typing import Any

from deephash_pipeline.losses.class_centres import hash_centres
from deephash_pipeline.losses.exponentiated import LossAndGradient
from deephash_pipeline.losses.hashing_loss import HashingLoss
from deephash_pipeline.losses.pairs import supervision_matrix
from deephash_pipeline.losses.registry import LOSS_PARAMETERS, LOSSES, LossParameters, build_loss
from deephash_pipeline.losses.similarity_bits import SimilarityBits, SimilarityParameters
from deephash_pipeline.losses.similarity_codes import similarity_codes

__all__ = [
    "LOSSES",
    "LOSS_PARAMETERS",
    "HashingLoss",
    "LossAndGradient",
    "LossParameters",
    "SimilarityBits",
    "SimilarityParameters",
    "build_loss",
    "hash_centres",
    "similarity_codes",
    "supervision_matrix",
]


def __getattr__(name: str) -> Any:
    return LOSSES.class_named(name)
