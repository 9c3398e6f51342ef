"""DSHSD, deep supervised hashing based on stable distribution."""

from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.dsh import contrastive_loss
from deephash_pipeline.losses.hashing_loss import HashingLoss, accuracy, code_metrics


class DSHSD(HashingLoss):
    """Classification by a softmax layer on h = tanh(u), and the contrastive loss of DSH on h.

    The softmax layer belongs to the network, which gives the logits: `deephash_pipeline.networks.ClassificationHead`.
    DeepHash-pytorch is <https://github.com/swuxyj/DeepHash-pytorch>, by others than the authors.
    Metrics: those of `code_metrics` for h, and the ``accuracy`` of the softmax layer.

    Args:
        contrast_weight: weight of the contrastive loss; 0.05 in DeepHash-pytorch.
        margin_per_bit: margin of the contrastive loss, over the code length; 2 there.

    Example:
        >>> import torch
        >>> loss = DSHSD(contrast_weight=0)
        >>> logits = torch.tensor([[2.0, 0.0], [1.0, 0.0]])
        >>> loss((torch.tensor([[1.0, -2.0], [1.0, 1.0]]), logits), torch.tensor([0, 1]))
        tensor(0.7201)
    """

    display_name = "DSHSD"
    reference = (
        "Wu et al., Deep supervised hashing based on stable distribution, Access 2019, "
        "https://ieeexplore.ieee.org/document/8648432"
    )
    classification_head = "relaxed_code"
    contrast_weight: NonNegativeFloat = 0.05
    margin_per_bit: PositiveFloat = 2.0

    def loss_and_metrics(self, outputs: tuple[Tensor, Tensor], labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss of (u, logits); see `HashingLoss.forward`."""
        u, logits = outputs
        h = u.tanh()
        contrast = contrastive_loss(h, labels, self.margin_per_bit)
        loss = functional.cross_entropy(logits, labels) + self.contrast_weight * contrast
        return loss, {**code_metrics(u, h), "accuracy": accuracy(logits, labels)}
