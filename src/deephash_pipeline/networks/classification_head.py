"""A classification head beside the hash layer, for losses that classify while they learn codes."""

from typing import Literal

import torch
from torch import Tensor, nn


class ClassificationHead(nn.Module):
    """A linear layer that maps z, the code sign(u), or tanh(u), to the logits of the classes.

    On the code it is GreedyHash's (Su et al., NeurIPS 2018): without bias, and the gradient passes the sign unchanged,
    see `straight_through_sign`.

    Args:
        reads: ``z``, ``code`` or ``relaxed_code``, tanh(u).
        dimension: length of z, or of the code.
        classes: number of classes.

    Example:
        >>> head = ClassificationHead("code", dimension=48, classes=10)
        >>> head(z=torch.zeros(2, 500), u=torch.ones(2, 48)).shape
        torch.Size([2, 10])
    """

    def __init__(self, reads: Literal["z", "code", "relaxed_code"], dimension: int, classes: int) -> None:
        super().__init__()
        self.reads = reads
        self.softmax = nn.Linear(dimension, classes, bias=reads != "code")

    def forward(self, z: Tensor, u: Tensor) -> Tensor:
        """Compute the logits.

        Args:
            z: float of shape (batch, z_dimension).
            u: float of shape (batch, code_length).

        Returns:
            Logits, float of shape (batch, classes).
        """
        read = {"z": lambda: z, "code": lambda: straight_through_sign(u), "relaxed_code": u.tanh}[self.reads]()
        logits: Tensor = self.softmax(read)
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
