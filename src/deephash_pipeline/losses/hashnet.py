"""HashNet (Cao, Long, Wang and Yu, ICCV 2017)."""

from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.exponentiated.loss import supervision_matrix
from deephash_pipeline.losses.hashing_loss import HashingLoss, code_health, mean_over


class HashNetParameters(BaseModel):
    """What a user may set about HashNet; defaults of the authors' PyTorch code.

    Attributes:
        likelihood_slope: alpha times the code length, in the log-odds alpha h_i . h_j of "same class".
        growth: how far beta = (1 + growth progress)^power rises during training. The authors take the root of
            1 + 0.005 iterations, of which they make 10,000.
        power: exponent of beta.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["hashnet"] = "hashnet"
    likelihood_slope: float = Field(default=10.0, gt=0)
    growth: float = Field(default=50.0, ge=0)
    power: float = Field(default=0.5, ge=0)


class HashNet(HashingLoss):
    """Weighted likelihood of "same class" for h = tanh(beta u), which comes nearer to sign(u) as beta grows.

    A pair costs log(1 + exp(-Y alpha h_i . h_j)), Y of 1 within a class and -1 across. Similar and dissimilar pairs
    weigh the same in total: the weights of the paper, all pairs by the pairs of a kind, give the sum of two means.
    Beta follows the share of the training that is done, so it has no state of its own; the authors' moves in 50 steps.
    """

    def __init__(self, parameters: HashNetParameters) -> None:
        super().__init__(parameters)
        self.beta = 1.0

    def set_progress(self, progress: float) -> None:
        """Sharpen tanh for what comes behind a share of the training, in [0, 1)."""
        self.beta = (1 + self.parameters_.growth * progress) ** self.parameters_.power

    def forward(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; watched: `code_health` of tanh(beta u), and ``beta``."""
        relaxed = torch.tanh(self.beta * u)
        supervision = supervision_matrix(labels).to(u.dtype)
        slope = self.parameters_.likelihood_slope / u.shape[1]
        cost = -functional.logsigmoid(supervision * slope * (relaxed @ relaxed.T))
        loss = mean_over(supervision.clamp_min(0), cost) + mean_over((-supervision).clamp_min(0), cost)
        return loss, {**code_health(u, relaxed), "beta": u.new_tensor(self.beta)}
