"""PSLDH, partial-softmax loss based deep hashing."""

from typing import Annotated

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.class_centres import ClassCentresLoss
from deephash_pipeline.losses.hashing_loss import accuracy, code_metrics, signs
from deephash_pipeline.losses.labels import label_matrix


class PSLDH(ClassCentresLoss):
    """Softmax over the products of h = tanh(u) with fixed codes of the classes, with a margin for the own one.

    A sample costs the cross-entropy of slope (h . c_k - margin K [k is its class]), and the sum over bits of
    (h - sign(h))^2. The authors find the centres by descent; here they are those of `hash_centres`. Metrics: those of
    `code_metrics` for h, and ``accuracy``, the share of samples nearest to the centre of their class.

    The authors' code: <https://github.com/rongchengtu1/PSLDH>.

    Args:
        code_length: bits.
        classes: number of classes.
        random_state: seed of the centres where they are drawn.
        slope: slope of the products; 0.2 in the authors' code.
        margin: margin divided by the code length; 0.2 there.
        quantisation_weight: weight of the sum over bits, a mean over samples; 0.01 there.

    Attributes:
        centres: float32 of shape (classes, code_length), of -1 and 1.

    Raises:
        InputError: there are fewer codes than classes.

    Example:
        >>> loss = PSLDH(code_length=16, classes=3)
        >>> labels = torch.tensor([0, 1, 2])
        >>> loss(9 * loss.centres[labels], labels)
        tensor(0.1438)
    """

    display_name = "PSLDH"
    reference = (
        "Tu, Mao, Guo, Wei & Huang, Partial-softmax loss based deep hashing, WWW 2021, "
        "https://github.com/rongchengtu1/PSLDH"
    )
    slope: PositiveFloat = 0.2
    margin: Annotated[float, Field(ge=0, lt=2)] = 0.2
    quantisation_weight: NonNegativeFloat = 0.01

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        h = torch.tanh(u)
        centres = self.centres.to(u.dtype)
        own = label_matrix(labels, len(centres)).to(u.dtype)
        products = h @ centres.T
        classified = functional.cross_entropy(self.slope * (products - self.margin * u.shape[1] * own), labels)
        quantisation = (h - signs(u)).square().sum(1).mean()
        metrics = {**code_metrics(u, h), "accuracy": accuracy(products, labels)}
        return classified + self.quantisation_weight * quantisation, metrics
