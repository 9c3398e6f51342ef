"""What every loss that fine-tuning takes by name has in common."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from deephash_pipeline.losses.exponentiated.tiles import signs

Outputs: TypeAlias = Any
"""What the network's head gives: u of shape (batch, code_length), or (u, logits) to a loss with a classifier."""


class HashingLoss(nn.Module, ABC):
    """A loss as an objective of the training loop: (outputs, labels) -> (loss, figures to watch).

    Attributes:
        classifier: what a softmax layer of the network, which such a loss is given the logits of, reads: ``z``, or the
            ``code`` (sign(u), whose gradient is passed on as that of u). None for a loss on u alone.
    """

    classifier: ClassVar[Literal["z", "code"] | None] = None

    def __init__(self, parameters: Any) -> None:
        super().__init__()
        self.parameters_ = parameters

    @classmethod
    def for_training_set(cls, parameters: Any, code_length: int, labels: NDArray[np.int64], seed: int) -> Self:
        """Make the loss for a training set; most losses need to know nothing of it.

        Args:
            parameters: the loss's own.
            code_length: bits.
            labels: int64 of shape (samples,), classes numbered from 0.
            seed: of all that is drawn.
        """
        return cls(parameters)

    @abstractmethod
    def forward(self, outputs: Outputs, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss of a batch.

        Args:
            outputs: what the network's head gives.
            labels: int64 of shape (batch,).

        Returns:
            The scalar to minimise, and detached scalars by name.
        """


def mean_over(pairs: Tensor, cost: Tensor) -> Tensor:
    """Mean of a cost (batch, batch) over the pairs marked by 1, others being marked by 0; 0 where there are none."""
    return (pairs * cost).sum() / pairs.sum().clamp_min(1)


@torch.no_grad()
def accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """Share of samples that the logits (batch, classes) classify rightly."""
    return (logits.argmax(1) == labels).to(logits.dtype).mean()


@torch.no_grad()
def bit_accuracy(u: Tensor, wanted: Tensor) -> Tensor:
    """Share of bits that are those of the wanted codes, -1 and 1 of u's shape."""
    return (signs(u) == wanted).to(u.dtype).mean()


@torch.no_grad()
def code_health(u: Tensor, relaxed_code: Tensor) -> dict[str, Tensor]:
    """Give the figures that all rivals are watched by.

    Args:
        u: shape (batch, code_length).
        relaxed_code: what the loss takes for a code in [-1, 1] or near it, same shape.

    Returns:
        ``u_standard_deviation``, and ``quantisation_error``: mean square of what the relaxed code lacks to the code.
    """
    return {
        "u_standard_deviation": u.std(),
        "quantisation_error": (relaxed_code - signs(u)).square().mean(),
    }
