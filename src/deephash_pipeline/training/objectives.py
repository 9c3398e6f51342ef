"""The objectives of both pre-training stages."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class CrossEntropy(nn.Module):
    """Softmax classification error, with the ``accuracy`` in `metrics`.

    Args:
        smoothing: share of a label that is spread over all classes alike (Szegedy et al. 2016, arXiv:1512.00567).

    Example:
        >>> objective = CrossEntropy()
        >>> objective(torch.tensor([[2.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1]))
        tensor(0.7201)
        >>> objective.metrics
        {'accuracy': tensor(0.5000)}
    """

    metrics: Mapping[str, Tensor] = MappingProxyType({})

    def __init__(self, smoothing: float = 0.0) -> None:
        super().__init__()
        self.smoothing = smoothing

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Compute the mean over a batch.

        Args:
            logits: shape (batch, classes).
            labels: int64 of shape (batch,).
        """
        with torch.no_grad():
            self.metrics = {"accuracy": (logits.argmax(1) == labels).float().mean()}
        return nn.functional.cross_entropy(logits, labels, label_smoothing=self.smoothing)


class BinaryCrossEntropy(nn.Module):
    """Classification error of images with any number of labels: each logit's sigmoid says whether its label is there.

    Cross-entropies are added up over the classes: the negative log-likelihood of an image, as that of softmax is. In
    `metrics`, ``accuracy`` is the share of images whose likeliest label is one of theirs.

    Args:
        smoothing: how much of each wanted 0 and 1 is moved to the mean of both.

    Example:
        >>> objective = BinaryCrossEntropy()
        >>> objective(torch.tensor([[2.0, -1.0], [1.0, 0.0]]), torch.tensor([[1, 0], [0, 1]], dtype=torch.uint8))
        tensor(1.2233)
        >>> objective.metrics
        {'accuracy': tensor(0.5000)}
    """

    metrics: Mapping[str, Tensor] = MappingProxyType({})

    def __init__(self, smoothing: float = 0.0) -> None:
        super().__init__()
        self.smoothing = smoothing

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Compute the mean over a batch.

        Args:
            logits: shape (batch, classes).
            labels: uint8 of shape (batch, classes), 1 for each label that an image has.
        """
        wanted = labels.to(logits.dtype)
        with torch.no_grad():
            self.metrics = {"accuracy": wanted.gather(1, logits.argmax(1, keepdim=True)).float().mean()}
        wanted = wanted.lerp(torch.full_like(wanted, 0.5), self.smoothing)
        summed = nn.functional.binary_cross_entropy_with_logits(logits, wanted, reduction="sum")
        return summed / max(1, len(logits))


def classification_objective(labels: NDArray[Any], smoothing: float = 0.0) -> nn.Module:
    """Make the objective of a classifier: of class numbers (n,), or of multi-hot labels (n, classes).

    Example:
        >>> import numpy as np
        >>> classification_objective(np.array([0, 1])), classification_objective(np.array([[1, 1], [0, 1]]))
        (CrossEntropy(), BinaryCrossEntropy())
    """
    return (BinaryCrossEntropy if labels.ndim == 2 else CrossEntropy)(smoothing)
