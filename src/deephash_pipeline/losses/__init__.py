"""Losses on the hash layer's output u: value and gradient for the training loop, with figures to watch."""

from .exponentiated import ExponentiatedLoss, ExponentiatedLossParameters, exponentiated_loss, supervision_matrix

__all__ = ["ExponentiatedLoss", "ExponentiatedLossParameters", "exponentiated_loss", "supervision_matrix"]
