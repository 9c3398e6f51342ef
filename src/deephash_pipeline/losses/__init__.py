"""Losses on the hash layer's output u: value and gradient for the training loop, with figures to watch."""

from .exponentiated import (
    ExponentiatedLoss,
    exponentiated_loss,
    exponentiated_loss_and_gradient,
    supervision_matrix,
)
from .exponentiated_formula import ExponentiatedLossParameters, LossAndGradient
from .hashing_loss import HashingLoss
from .registry import LOSSES, LossParameters, build_loss

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
