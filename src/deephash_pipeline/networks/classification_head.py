"""A softmax layer beside the hash layer, for losses that classify while they learn codes."""

from typing import Literal

import torch
from torch import Tensor, nn


class ClassificationHead(nn.Module):
    """Logits (batch, classes) of z, or of the code sign(u).

    A sign has no derivative; the gradient that reaches the code goes on to u as it is (Su et al., NeurIPS 2018). On the
    code the layer has no bias, as theirs.

    Args:
        reads: ``z`` or ``code``.
        dimension: of what it reads.
        classes: how many there are.
    """

    def __init__(self, reads: Literal["z", "code"], dimension: int, classes: int) -> None:
        super().__init__()
        self.reads = reads
        self.softmax = nn.Linear(dimension, classes, bias=reads == "z")

    def forward(self, z: Tensor, u: Tensor) -> Tensor:
        """Compute the logits from z (batch, z_dimension) or u (batch, code_length)."""
        logits: Tensor = self.softmax(z if self.reads == "z" else straight_through_sign(u))
        return logits


def straight_through_sign(u: Tensor) -> Tensor:
    """Signs of u, exactly -1 and 1 with 0 counting as 1, whose gradient is passed on as that of u."""
    signs = torch.where(u >= 0, torch.ones_like(u), -torch.ones_like(u))
    return signs + (u - u.detach())
