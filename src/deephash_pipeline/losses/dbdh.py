"""DBDH, deep balanced discrete hashing."""

from pydantic import NonNegativeFloat
from torch import Tensor

from deephash_pipeline.losses.hashing_loss import HashingLoss, code_metrics
from deephash_pipeline.losses.pairs import pair_likelihood, pair_log_odds


class DBDH(HashingLoss):
    """Likelihood of "similar" for u cut off at -1 and 1, and as many bits of 1 as of -1 in every code.

    With h = clip(u, -1, 1) a pair costs log(1 + exp(-Y h_i . h_j / 2)), Y of 1 for similar pairs and -1 for others; a
    sample costs the square of the mean of h over its bits. The paper argues against relaxing codes and lets gradients
    through signs; this is the relaxation, as DeepHash-pytorch has it. Metrics: those of `code_metrics` for h.

    Args:
        balance_weight: weight of the square; 0.1 in DeepHash-pytorch.

    Example:
        >>> import torch
        >>> loss = DBDH(balance_weight=1.0)
        >>> loss(torch.tensor([[3.0, 1.0], [1.0, 1.0]]), torch.tensor([0, 0]))
        tensor(1.3133)
    """

    display_name = "DBDH"
    reference = (
        "Zheng, Zhang & Lu, Deep balanced discrete hashing for image retrieval, Neurocomputing 2020, "
        "doi:10.1016/j.neucom.2020.04.037"
    )
    several_labels = True
    balance_weight: NonNegativeFloat = 0.1

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        h = u.clamp(-1, 1)
        likelihood = pair_likelihood(labels, pair_log_odds(h))
        balance = h.mean(1).square().mean()
        return likelihood + self.balance_weight * balance, code_metrics(u, h)
