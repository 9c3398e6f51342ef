"""IDHN, improved deep hashing network for images of several labels."""

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.hashing_loss import HashingLoss, code_metrics
from deephash_pipeline.losses.labels import is_multi_hot
from deephash_pipeline.losses.pairs import mean_over, shares_a_label

HARD_SIMILARITY = 0.01
"""A similarity nearer than this to 0 or 1 is a hard one."""


class IDHN(HashingLoss):
    """Pairs are as similar as their labels' cosine w; those of w 0 or 1 by likelihood, others by squared error.

    With h = u / (1 + |u|), w_ij = cos(y_i, y_j) and t = slope h_i . h_j / K, a pair that shares all labels or none
    costs log(1 + exp(t)) - w t, another one weight K ((h_i . h_j + K) / 2K - w)^2. With one label an image all pairs
    are hard. Metrics: those of `code_metrics` for h.

    The authors' code: <https://github.com/pectinid16/IDHN>.

    Args:
        likelihood_slope: slope of t; 5 in the authors' code.
        soft_weight: weight of the squared error, over the code length; 0.1 there.
        quantisation_weight: weight of the mean of | |h| - 1 | over samples and bits; 0.1 there.

    Example:
        >>> loss = IDHN(quantisation_weight=0)
        >>> loss(torch.tensor([[9.0, 9.0], [9.0, 9.0]]), torch.tensor([[1, 1], [1, 0]], dtype=torch.uint8))
        tensor(0.0078)
    """

    display_name = "IDHN"
    reference = (
        "Zhang et al., Improved deep hashing with soft pairwise similarity for multi-label retrieval, TMM 2019, "
        "arXiv:1803.02987"
    )
    several_labels = True
    likelihood_slope: PositiveFloat = 5.0
    soft_weight: NonNegativeFloat = 0.1
    quantisation_weight: NonNegativeFloat = 0.1

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        code_length = u.shape[1]
        h = functional.softsign(u)
        products = h @ h.T
        similarity = label_cosines(labels, u.dtype)
        log_odds = self.likelihood_slope * products / code_length
        hard = functional.softplus(log_odds) - similarity * log_odds
        soft = self.soft_weight * code_length * ((products + code_length) / (2 * code_length) - similarity).square()
        between = (similarity >= HARD_SIMILARITY) & (similarity <= 1 - HARD_SIMILARITY)
        pairs = 1 - torch.eye(len(u), dtype=u.dtype, device=u.device)
        quantisation = (h.abs() - 1).abs().mean()
        loss = mean_over(pairs, torch.where(between, soft, hard)) + self.quantisation_weight * quantisation
        return loss, code_metrics(u, h)


def label_cosines(labels: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Cosine of the labels of each pair, (batch, batch), in [0, 1]; that of an image without a label is 0.

    Example:
        >>> label_cosines(torch.tensor([[1, 1], [1, 0], [0, 1]], dtype=torch.uint8))
        tensor([[1.0000, 0.7071, 0.7071],
                [0.7071, 1.0000, 0.0000],
                [0.7071, 0.0000, 1.0000]])
    """
    if not is_multi_hot(labels):
        return shares_a_label(labels).to(dtype)
    direction = functional.normalize(labels.to(dtype))
    return direction @ direction.T
