"""DPSH, deep pairwise-supervised hashing (Li, Wang and Kang, IJCAI 2016)."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.exponentiated.loss import supervision_matrix
from deephash_pipeline.losses.exponentiated.tiles import signs
from deephash_pipeline.losses.hashing_loss import HashingLoss, code_health, mean_over


class DPSHParameters(BaseModel):
    """What a user may set about DPSH.

    Attributes:
        quantisation_weight: eta, of the mean square of u - sign(u) over samples and bits. The authors' 10 goes with
            sums over 5,000 images; at 48 bits that is the 0.1 of DeepHash-pytorch, which is the default here.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["dpsh"] = "dpsh"
    quantisation_weight: float = Field(default=0.1, ge=0)


class DPSH(HashingLoss):
    """Negative log-likelihood of "same class" with log-odds theta = u_i . u_j / 2, and the distance of u to its signs.

    A pair costs log(1 + exp(-Y theta)), Y of 1 within a class and -1 across. The mean is over the pairs of a batch,
    both of whose samples are variables; the authors pair a batch with codes of the whole set, kept from earlier steps.
    """

    def forward(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; watched: figures of `code_health`, with u itself for the relaxed code."""
        supervision = supervision_matrix(labels).to(u.dtype)
        cost = -functional.logsigmoid(supervision * (u @ u.T) / 2)
        quantisation = (u - signs(u)).square().mean()
        return mean_over(supervision.abs(), cost) + self.parameters_.quantisation_weight * quantisation, code_health(
            u, u
        )
