"""DHN, deep hashing network."""

import math

from pydantic import NonNegativeFloat
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.hashing_loss import HashingLoss, code_metrics
from deephash_pipeline.losses.pairs import balanced_mean, mean_over, pair_log_odds, shares_a_label, supervision_matrix


class DHN(HashingLoss):
    """Likelihood of "similar" with log-odds theta = u_i . u_j / 2, and a smooth pull of |u| to 1, log cosh(|u| - 1).

    A pair costs log(1 + exp(-Y theta)), Y of 1 for similar pairs and -1 for others. The paper adds pairs
    and samples up; here either term is a mean, so that lambda means the same for a batch of any size.
    Metrics: those of `code_metrics`, with u itself for the relaxed code.

    The authors' code: <https://github.com/thulab/DeepHash>.

    Args:
        quantisation_weight: lambda, of the mean of log cosh(|u| - 1) over samples and bits; 0.1 to 1 in the authors'
            configurations.
        balance_pairs: True if similar pairs weigh as much as the others in total, to which their weight in the authors'
            code (all pairs by similar ones) comes near; the paper's are all alike.

    Example:
        >>> import torch
        >>> loss = DHN(quantisation_weight=0)
        >>> loss(torch.tensor([[2.0, 0.0], [2.0, 0.0], [-2.0, 0.0]]), torch.tensor([0, 0, 1]))
        tensor(0.2539)
    """

    display_name = "DHN"
    reference = (
        "Zhu, Long, Wang & Cao, Deep hashing network for efficient similarity retrieval, AAAI 2016, "
        "doi:10.1609/aaai.v30i1.10235"
    )
    several_labels = True
    quantisation_weight: NonNegativeFloat = 0.1
    balance_pairs: bool = True

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        supervision = supervision_matrix(labels).to(u.dtype)
        cost = -functional.logsigmoid(supervision * pair_log_odds(u))
        if self.balance_pairs:
            likelihood = balanced_mean(shares_a_label(labels), cost)
        else:
            likelihood = mean_over(supervision.abs(), cost)
        lacking = (u.abs() - 1).abs()
        # log cosh x, without the exponential of large x.
        log_cosh = lacking + functional.softplus(-2 * lacking) - math.log(2)
        return likelihood + self.quantisation_weight * log_cosh.mean(), code_metrics(u, u)
