"""CNNH and CNNH+ (Xia, Pan, Lai, Liu and Yan, AAAI 2014): the paper's DH-1 and DH*-1."""

from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.hashing_loss import HashingLoss, accuracy, bit_accuracy, code_health
from deephash_pipeline.losses.similarity_codes import SimilarityCodesParameters, similarity_codes


class CNNHParameters(SimilarityCodesParameters):
    """What a user may set about CNNH: how its codes are found."""

    name: Literal["cnnh"] = "cnnh"


class CNNHPlusParameters(SimilarityCodesParameters):
    """What a user may set about CNNH+.

    Attributes:
        label_weight: of the cross-entropy of the labels, beside the regression to the codes.
    """

    name: Literal["cnnh_plus"] = "cnnh_plus"
    label_weight: float = Field(default=1.0, ge=0)


class _CodeRegression(HashingLoss):
    class_codes: Tensor

    def __init__(self, parameters: CNNHParameters | CNNHPlusParameters, class_codes: NDArray[np.float32]) -> None:
        super().__init__(parameters)
        self.register_buffer("class_codes", torch.from_numpy(class_codes))

    @classmethod
    def for_training_set(
        cls, parameters: CNNHParameters | CNNHPlusParameters, code_length: int, labels: NDArray[np.int64], seed: int
    ) -> Self:
        """Find the codes of the classes: the first of CNNH's two stages."""
        return cls(parameters, similarity_codes(labels, code_length, parameters, seed))

    def regress(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compare tanh(u) with the codes of the classes; see `CNNH`."""
        relaxed = torch.tanh(u)
        wanted = self.class_codes[labels].to(u.dtype)
        watched = {**code_health(u, relaxed), "bit_accuracy": bit_accuracy(u, wanted)}
        return (relaxed - wanted).square().mean(), watched


class CNNH(_CodeRegression):
    """Regression of tanh(u) to codes found beforehand, by factorising the matrix of similarities.

    Images of a class share a code, see `similarity_codes`; the loss is the mean square over samples and bits.
    """

    def forward(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; watched: `code_health` of tanh(u), and ``bit_accuracy``, the share of bits as wanted."""
        return self.regress(u, labels)


class CNNHPlus(_CodeRegression):
    """CNNH whose trunk learns to classify as well: a softmax layer on z, beside the hash layer."""

    classifier = "z"

    def forward(self, outputs: tuple[Tensor, Tensor], labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss of (u, logits); watched: what CNNH watches, and the ``accuracy`` of the softmax layer."""
        u, logits = outputs
        regression, watched = self.regress(u, labels)
        loss = regression + self.parameters_.label_weight * functional.cross_entropy(logits, labels)
        return loss, {**watched, "accuracy": accuracy(logits, labels)}
