"""The objective of both pre-training stages."""

import torch
from torch import Tensor, nn


class CrossEntropy(nn.Module):
    """Softmax classification error: (logits, labels) -> (loss, {"accuracy"})."""

    def forward(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the mean over a batch.

        Args:
            logits: shape (batch, classes).
            labels: int64 of shape (batch,).
        """
        with torch.no_grad():
            accuracy = (logits.argmax(1) == labels).float().mean()
        return nn.functional.cross_entropy(logits, labels), {"accuracy": accuracy}
