"""DSH, deep supervised hashing."""

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor

from deephash_pipeline.losses.dnnh import pairwise_squared_distances
from deephash_pipeline.losses.hashing_loss import HashingLoss, code_metrics
from deephash_pipeline.losses.pairs import mean_over, supervision_matrix


class DSH(HashingLoss):
    """Contrastive loss: similar pairs are pulled together, dissimilar ones apart, up to a squared distance of 2K.

    With d = |u_i - u_j|^2 a similar pair costs d / 2, another one max(0, 2K - d) / 2. Not density sensitive hashing,
    which has the same initials.

    The paper adds what both samples of each pair lack to a code, twice the mean over samples that is taken here: its
    alpha of 0.01 is 0.02 here. Metrics: those of `code_metrics`, with u itself for the relaxed code.

    The authors' code: <https://github.com/lhmRyan/deep-supervised-hashing-DSH>.

    Args:
        quantisation_weight: alpha, of the sum of | |u_k| - 1 | over bits, a mean over samples; 0.01 in the paper.
        margin_per_bit: m over the code length; 2 in the paper, half of what opposite bits are apart.

    Example:
        >>> loss = DSH(quantisation_weight=0)
        >>> loss(torch.tensor([[1.0, 1.0], [1.0, 0.0], [-1.0, -1.0]]), torch.tensor([0, 0, 1]))
        tensor(0.1667)
    """

    display_name = "DSH"
    reference = (
        "Liu, Wang, Shan & Chen, Deep supervised hashing for fast image retrieval, CVPR 2016, doi:10.1109/CVPR.2016.227"
    )
    several_labels = True
    quantisation_weight: NonNegativeFloat = 0.01
    margin_per_bit: PositiveFloat = 2.0

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        contrast = contrastive_loss(u, labels, self.margin_per_bit)
        quantisation = (u.abs() - 1).abs().sum(1).mean()
        return contrast + self.quantisation_weight * quantisation, code_metrics(u, u)


def contrastive_loss(codes: Tensor, labels: Tensor, margin_per_bit: float) -> Tensor:
    """Mean over pairs of half the squared distance of similar ones, and half of what others lack to the margin.

    Args:
        codes: relaxed, (batch, code_length).
        labels: labels, as `shares_a_label` takes them.
        margin_per_bit: margin over the code length.

    Example:
        >>> contrastive_loss(torch.tensor([[1.0, 1.0], [1.0, -1.0]]), torch.tensor([0, 1]), margin_per_bit=3)
        tensor(1.)
    """
    supervision, distances = supervision_matrix(labels).to(codes.dtype), pairwise_squared_distances(codes)
    lacking = (margin_per_bit * codes.shape[1] - distances).clamp_min(0)
    return mean_over(supervision.abs(), torch.where(supervision > 0, distances, lacking) / 2)
