"""DSH, deep supervised hashing."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from deephash_pipeline.common.parameters import validated
from deephash_pipeline.losses.dnnh import squared_distances
from deephash_pipeline.losses.hashing_loss import HashingLoss, code_metrics, mean_over, supervision_matrix


class DSH(HashingLoss):
    """Contrastive loss: similar pairs are pulled together, dissimilar ones apart, up to a squared distance of 2K.

    With d = |u_i - u_j|^2 a similar pair costs d / 2, another one max(0, 2K - d) / 2. Not density sensitive hashing,
    which has the same initials. Metrics: those of `code_metrics`, with u itself for the relaxed code.

    Args:
        quantisation_weight: alpha, of the sum of | |u_k| - 1 | over bits, a mean over samples; 0.01 in the paper.
        margin_per_bit: m over the code length; 2 in the paper, half of what opposite bits are apart.

    Example:
        >>> loss = DSH(quantisation_weight=0)
        >>> loss(torch.tensor([[1.0, 1.0], [1.0, 0.0], [-1.0, -1.0]]), torch.tensor([0, 0, 1]))
        tensor(0.1667)
    """

    display_name = "DSH"
    reference = "Liu, Wang, Shan & Chen, Deep supervised hashing for fast image retrieval, CVPR 2016"
    several_labels = True

    @validated()
    def __init__(
        self,
        quantisation_weight: Annotated[float, Field(ge=0)] = 0.01,
        margin_per_bit: Annotated[float, Field(gt=0)] = 2.0,
    ) -> None:
        super().__init__()
        self.quantisation_weight = quantisation_weight
        self.margin_per_bit = margin_per_bit

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        supervision = supervision_matrix(labels).to(u.dtype)
        contrast = mean_over(supervision.abs(), contrastive_cost(u, supervision, self.margin_per_bit))
        quantisation = (u.abs() - 1).abs().sum(1).mean()
        return contrast + self.quantisation_weight * quantisation, code_metrics(u, u)


def contrastive_cost(codes: Tensor, supervision: Tensor, margin_per_bit: float) -> Tensor:
    """Half of the squared distance of similar pairs, and half of what dissimilar ones lack to the margin.

    Args:
        codes: relaxed, (batch, code_length).
        supervision: 1 for similar pairs, others dissimilar, (batch, batch).
        margin_per_bit: margin over the code length.

    Example:
        >>> codes = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
        >>> contrastive_cost(codes, torch.tensor([[0.0, 1.0], [-1.0, 0.0]]), margin_per_bit=3)
        tensor([[3., 2.],
                [1., 3.]])
    """
    distances = squared_distances(codes)
    return torch.where(supervision > 0, distances, (margin_per_bit * codes.shape[1] - distances).clamp_min(0)) / 2
