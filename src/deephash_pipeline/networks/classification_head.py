"""A classification head beside the hash layer, for losses that classify while they learn codes."""

from typing import Literal

import torch
from torch import Tensor, nn


class ClassificationHead(nn.Module):
    """A linear layer that maps z, or the code sign(u), to the logits of the classes.

    On the code it is GreedyHash's (Su et al., NeurIPS 2018): without bias, and the gradient passes the sign unchanged,
    see `straight_through_sign`.

    Args:
        reads: ``z`` or ``code``.
        dimension: length of z, or of the code.
        classes: number of classes.

    Example:
        >>> head = ClassificationHead("code", dimension=48, classes=10)
        >>> head(z=torch.zeros(2, 500), u=torch.ones(2, 48)).shape
        torch.Size([2, 10])
    """

    def __init__(self, reads: Literal["z", "code"], dimension: int, classes: int) -> None:
        super().__init__()
        self.reads = reads
        self.softmax = nn.Linear(dimension, classes, bias=reads == "z")

    def forward(self, z: Tensor, u: Tensor) -> Tensor:
        """Compute the logits.

        Args:
            z: float of shape (batch, z_dimension).
            u: float of shape (batch, code_length).

        Returns:
            Logits, float of shape (batch, classes).
        """
        logits: Tensor = self.softmax(z if self.reads == "z" else straight_through_sign(u))
        return logits


def straight_through_sign(u: Tensor) -> Tensor:
    """Signs of u, exactly -1 and 1 with 0 counting as 1, whose gradient is passed on as that of u.

    Args:
        u: float of any shape.

    Example:
        >>> straight_through_sign(torch.tensor([-0.2, 0.0, 3.0]))
        tensor([-1.,  1.,  1.])
    """
    signs = torch.where(u >= 0, torch.ones_like(u), -torch.ones_like(u))
    return signs + (u - u.detach())
