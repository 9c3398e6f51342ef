"""The paper's exponentiated loss: as it is written (`reference`), and compiled for the CPU and for CUDA devices."""

from deephash_pipeline.losses.exponentiated.formula import LossAndGradient
from deephash_pipeline.losses.exponentiated.loss import ExponentiatedLoss

__all__ = ["ExponentiatedLoss", "LossAndGradient"]
