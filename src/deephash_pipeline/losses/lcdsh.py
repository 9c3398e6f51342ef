"""LCDSH, locality-constrained deep supervised hashing."""

from pydantic import NonNegativeFloat
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.hashing_loss import HashingLoss, code_metrics, signs
from deephash_pipeline.losses.pairs import mean_over, pair_log_odds, supervision_matrix


class LCDSH(HashingLoss):
    """Likelihood of "similar", and the similarities of u kept when u becomes its signs.

    With theta = u_i . u_j / 2 a pair costs log(1 + exp(-Y theta)), Y of 1 for similar pairs and -1 for others, and
    weight (sigma(theta) - sigma(b_i . b_j / 2))^2, b = sign(u) a constant. Either term is a mean over pairs.
    DeepHash-pytorch is <https://github.com/swuxyj/DeepHash-pytorch>. Metrics: those of `code_metrics` for u.

    Args:
        locality_weight: weight of the square; 3 in DeepHash-pytorch.

    Example:
        >>> import torch
        >>> loss = LCDSH(locality_weight=0)
        >>> loss(torch.tensor([[2.0, 0.0], [2.0, 0.0], [-2.0, 0.0]]), torch.tensor([0, 0, 1]))
        tensor(0.1269)
    """

    display_name = "LCDSH"
    reference = (
        "Zhu & Gao, Locality-constrained deep supervised hashing for image retrieval, IJCAI 2017, "
        "doi:10.24963/ijcai.2017/499"
    )
    several_labels = True
    locality_weight: NonNegativeFloat = 3.0

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        supervision = supervision_matrix(labels).to(u.dtype)
        theta, of_codes = pair_log_odds(u), pair_log_odds(signs(u))
        locality = (theta.sigmoid() - of_codes.sigmoid()).square()
        cost = -functional.logsigmoid(supervision * theta) + self.locality_weight * locality
        return mean_over(supervision.abs(), cost), code_metrics(u, u)
