"""GreedyHash (Su, Zhang, Han and Tian, NeurIPS 2018)."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.hashing_loss import HashingLoss, accuracy, code_health


class GreedyHashParameters(BaseModel):
    """What a user may set about GreedyHash.

    Attributes:
        quantisation_weight: alpha, of the mean of | |u| - 1 |^3 over samples and bits; 0.1 in the authors' code for
            CIFAR-10.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["greedy_hash"] = "greedy_hash"
    quantisation_weight: float = Field(default=0.1, ge=0)


class GreedyHash(HashingLoss):
    """Classification by the code itself: cross-entropy of a softmax layer on sign(u), and a pull of |u| to 1.

    The sign stands in the forward pass; backwards the gradient of the code is taken for that of u. Both, and the
    softmax layer, belong to the network, which gives the logits.
    """

    classifier = "code"

    def forward(self, outputs: tuple[Tensor, Tensor], labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss of (u, logits); watched: `code_health` of u, and the ``accuracy`` of the softmax layer."""
        u, logits = outputs
        pull = (u.abs() - 1).abs().pow(3).mean()
        loss = functional.cross_entropy(logits, labels) + self.parameters_.quantisation_weight * pull
        return loss, {**code_health(u, u), "accuracy": accuracy(logits, labels)}
