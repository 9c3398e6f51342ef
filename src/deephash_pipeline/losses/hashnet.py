"""HashNet, deep learning to hash by continuation."""

from dataclasses import field

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.hashing_loss import HashingLoss, code_metrics
from deephash_pipeline.losses.pairs import mean_over, supervision_matrix

LARGEST_BETA = 1e6
"""Tanh is a step by then; beyond float32, its slope would be zero times infinity."""


class HashNet(HashingLoss):
    """Weighted likelihood of "same class" for h = tanh(beta u), which comes nearer to sign(u) as beta grows.

    A pair costs log(1 + exp(-Y alpha h_i . h_j)), Y of 1 within a class and -1 across. Similar and dissimilar pairs
    weigh the same in total: the weights of the paper, all pairs by the pairs of a kind, give the sum of two means.
    Beta follows the share of the training that is done, so it has no state of its own; the authors' moves in 50 steps.
    Defaults are those of the authors' PyTorch code. Metrics: those of `code_metrics` for tanh(beta u), and ``beta``.

    The authors' code: <https://github.com/thuml/HashNet>.

    Args:
        likelihood_slope: alpha times the code length, in the log-odds alpha h_i . h_j of "same class".
        growth: number in beta = (1 + growth progress)^power, which rises during training. The authors take the root of
            1 + 0.005 iterations, of which they make 10,000.
        power: exponent of beta.

    Example:
        >>> loss = HashNet()
        >>> u, labels = torch.tensor([[0.1, -0.1], [0.2, -0.1], [-0.1, 0.1]]), torch.tensor([0, 0, 1])
        >>> for progress in (0, 0.5, 0.9):
        ...     loss.set_progress(progress)
        ...     print(f"{loss(u, labels):.4f}, beta {loss.metrics['beta']:.2f}")
        1.2552, beta 1.00
        0.1315, beta 5.10
        0.0348, beta 6.78
    """

    display_name = "HashNet"
    reference = "Cao, Long, Wang & Yu, HashNet: deep learning to hash by continuation, ICCV 2017, arXiv:1702.00758"
    several_labels = True
    likelihood_slope: PositiveFloat = 10.0
    growth: NonNegativeFloat = 50.0
    power: NonNegativeFloat = 0.5
    beta: float = field(init=False, default=1.0)

    def set_progress(self, progress: float) -> None:
        """Sharpen tanh for what comes after a share of the training, in [0, 1)."""
        self.beta = min((1 + self.growth * progress) ** self.power, LARGEST_BETA)

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        relaxed = torch.tanh(self.beta * u)
        supervision = supervision_matrix(labels).to(u.dtype)
        slope = self.likelihood_slope / u.shape[1]
        cost = -functional.logsigmoid(supervision * slope * (relaxed @ relaxed.T))
        loss = mean_over(supervision.clamp_min(0), cost) + mean_over((-supervision).clamp_min(0), cost)
        return loss, {**code_metrics(u, relaxed), "beta": u.new_tensor(self.beta)}
