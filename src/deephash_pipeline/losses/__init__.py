"""Losses on the hash layer's output u: value and gradient for the training loop, with figures to watch."""

from .exponentiated import (
    ExponentiatedLoss,
    exponentiated_loss,
    exponentiated_loss_and_gradient,
    supervision_matrix,
)
from .exponentiated_formula import ExponentiatedLossParameters, LossAndGradient

__all__ = [
    "ExponentiatedLoss",
    "ExponentiatedLossParameters",
    "LossAndGradient",
    "exponentiated_loss",
    "exponentiated_loss_and_gradient",
    "supervision_matrix",
]
