"""DTSH, deep supervised hashing with triplet labels."""

import torch
from pydantic import NonNegativeFloat
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.hashing_loss import HashingLoss, code_metrics, signs
from deephash_pipeline.losses.pairs import pair_log_odds, shares_a_label


class DTSH(HashingLoss):
    """Likelihood of triplets: q is nearer to a similar p than to a dissimilar n, by a margin, in theta = u . u' / 2.

    A triplet costs log(1 + exp(-(theta_qp - theta_qn - alpha))). The mean is over all triplets of a batch, where the
    authors draw 50 similar and 50 dissimilar images of each other class for every image. Metrics: those of
    `code_metrics`, with u itself for the relaxed code.

    The authors' code: <https://github.com/Minione/DTSH>.

    Args:
        margin_share: alpha over the code length; the authors' alpha is half of the bits.
        quantisation_weight: eta, of the mean square of u - sign(u) over samples and bits. The authors' 100 is of a sum
            over bits, beside sums of 22,500 triplets an image of CIFAR-10: at 48 bits that is the 0.2 of means.

    Example:
        >>> loss = DTSH(quantisation_weight=0)
        >>> loss(torch.tensor([[1.0, 1.0], [1.0, 1.0], [-1.0, -1.0]]), torch.tensor([0, 0, 1]))
        tensor(0.3133)
    """

    display_name = "DTSH"
    reference = "Wang, Shi & Kitani, Deep supervised hashing with triplet labels, ACCV 2016, arXiv:1612.03900"
    several_labels = True
    margin_share: NonNegativeFloat = 0.5
    quantisation_weight: NonNegativeFloat = 0.2

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        similar = shares_a_label(labels)
        theta = pair_log_odds(u)
        positive = similar & ~torch.eye(len(u), dtype=torch.bool, device=u.device)
        # The similar ones of each q come first, so that no room is taken by the triplets that there are not.
        most = int(positive.sum(1).max())
        order = positive.byte().argsort(dim=1, descending=True, stable=True)[:, :most]
        there = positive.gather(1, order)[:, :, None] & ~similar[:, None, :]
        gaps = theta.gather(1, order)[:, :, None] - theta[:, None, :]
        cost = functional.softplus(self.margin_share * u.shape[1] - gaps)
        likelihood = (cost * there).sum() / there.sum().clamp_min(1)
        quantisation = (u - signs(u)).square().mean()
        return likelihood + self.quantisation_weight * quantisation, code_metrics(u, u)
