"""The objective of both pre-training stages."""

import torch
from torch import Tensor, nn


class CrossEntropy(nn.Module):
    """Softmax classification error, with the ``accuracy`` in `metrics`.

    Example:
        >>> objective = CrossEntropy()
        >>> objective(torch.tensor([[2.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1]))
        tensor(0.7201)
        >>> objective.metrics
        {'accuracy': tensor(0.5000)}
    """

    metrics: dict[str, Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.metrics = {}

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Compute the mean over a batch.

        Args:
            logits: shape (batch, classes).
            labels: int64 of shape (batch,).
        """
        with torch.no_grad():
            self.metrics = {"accuracy": (logits.argmax(1) == labels).float().mean()}
        return nn.functional.cross_entropy(logits, labels)
