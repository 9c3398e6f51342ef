"""DCH, deep Cauchy hashing."""

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.hashing_loss import HashingLoss, code_metrics
from deephash_pipeline.losses.pairs import balanced_mean, shares_a_label

SMALLEST_DISTANCE = 1e-3
"""Distances are at least this, because the logarithm of 0 is none."""


class DCH(HashingLoss):
    """Cauchy likelihood of "similar" at d = (K / 2) (1 - cos(u_i, u_j)), which drops fast with the distance.

    A similar pair costs log(d / gamma) + log(1 + gamma / d), another one log(1 + gamma / d); both kinds of pairs weigh
    the same in total. What u lacks to a code costs log(1 + d(|u|, 1) / gamma). Metrics: those of `code_metrics` for u
    scaled to the length of a code.

    The authors' code: <https://github.com/thulab/DeepHash>.

    Args:
        gamma: distance at which "similar" is as likely as not. None for the authors' 20 from 60 bits on, and below it a
            third of the bits.
        quantisation_weight: lambda; 0.1 in DeepHash-pytorch. The authors' script has 0.

    Example:
        >>> loss = DCH(gamma=1.0, quantisation_weight=0)
        >>> loss(torch.tensor([[1.0, 1.0], [1.0, -1.0]]), torch.tensor([0, 1]))
        tensor(0.6931)
    """

    display_name = "DCH"
    reference = (
        "Cao, Long, Liu & Wang, Deep Cauchy hashing for Hamming space retrieval, CVPR 2018, doi:10.1109/CVPR.2018.00134"
    )
    several_labels = True
    gamma: PositiveFloat | None = None
    quantisation_weight: NonNegativeFloat = 0.1

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        code_length = u.shape[1]
        gamma = self.gamma or min(20.0, code_length / 3)
        similar = shares_a_label(labels)
        direction = functional.normalize(u)
        distances = (code_length / 2 * (1 - direction @ direction.T)).clamp_min(SMALLEST_DISTANCE)
        # log(d / gamma) + log(1 + gamma / d) is log(1 + d / gamma).
        cost = torch.where(similar, torch.log1p(distances / gamma), torch.log1p(gamma / distances))
        to_code = code_length / 2 * (1 - direction.abs().sum(1) / code_length**0.5)
        quantisation = torch.log1p(to_code.clamp_min(0) / gamma).mean()
        loss = balanced_mean(similar, cost) + self.quantisation_weight * quantisation
        return loss, code_metrics(u, direction * code_length**0.5)
