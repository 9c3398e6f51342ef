"""Losses on the hash layer's output u: value and gradient for the training loop, with figures to watch."""

from deephash_pipeline.losses.exponentiated.formula import ExponentiatedLossParameters, LossAndGradient
from deephash_pipeline.losses.exponentiated.loss import (
    ExponentiatedLoss,
    exponentiated_loss,
    exponentiated_loss_and_gradient,
    supervision_matrix,
)
from deephash_pipeline.losses.hashing_loss import HashingLoss
from deephash_pipeline.losses.registry import LOSSES, LossParameters, build_loss

__all__ = [
    "LOSSES",
    "ExponentiatedLoss",
    "ExponentiatedLossParameters",
    "HashingLoss",
    "LossAndGradient",
    "LossParameters",
    "build_loss",
    "exponentiated_loss",
    "exponentiated_loss_and_gradient",
    "supervision_matrix",
]
