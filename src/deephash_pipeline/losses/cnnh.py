"""CNNH and CNNH+, convolutional neural network hashing: the paper's DH-1 and DH*-1."""

from dataclasses import InitVar, field

import torch
from numpy.typing import ArrayLike
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.hashing_loss import HashingLoss, Outputs, accuracy, bit_accuracy, code_metrics
from deephash_pipeline.losses.labels import codes_of
from deephash_pipeline.losses.similarity_codes import similarity_codes


class CNNH(HashingLoss):
    """Regression of tanh(u) to codes found beforehand, by factorising the matrix of similarities.

    Images of a class share a code, see `similarity_codes`: finding them is the first of CNNH's two stages. The loss is
    the mean square over samples and bits. Metrics: those of `code_metrics` for tanh(u), and ``bit_accuracy``, the share
    of bits that are those of the code of the class.

    Args:
        code_length: bits.
        labels: class labels of the training set, integers of shape (samples,), classes numbered from 0.
        random_state: seed of the factorisation.

    Attributes:
        class_codes: float32 of shape (classes, code_length), of -1 and 1.

    Example:
        >>> loss = CNNH(code_length=8, labels=[0, 0, 1, 1, 2])
        >>> labels = torch.tensor([0, 2])
        >>> print(f"{loss(loss.class_codes[labels], labels):.4f}")
        0.0568
        >>> loss.metrics["bit_accuracy"]
        tensor(1.)
    """

    display_name = "CNNH (DH-1)"
    reference = (
        "Xia, Pan, Lai, Liu & Yan, Supervised hashing for image retrieval via image representation learning, AAAI "
        "2014, doi:10.1609/aaai.v28i1.8952"
    )
    needs = ("code_length", "labels", "random_state")
    code_length: PositiveInt
    labels: InitVar[ArrayLike]
    random_state: NonNegativeInt = 0
    class_codes: Tensor = field(init=False)

    def __post_init__(self, labels: ArrayLike) -> None:
        codes = similarity_codes(labels, self.code_length, self.random_state)
        self.register_buffer("class_codes", torch.from_numpy(codes))

    def loss_and_metrics(self, outputs: Outputs, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Regress u to the codes of the classes; see `HashingLoss.forward`."""
        u: Tensor = outputs
        relaxed = torch.tanh(u)
        wanted = codes_of(labels, self.class_codes).to(u.dtype)
        metrics = {**code_metrics(u, relaxed), "bit_accuracy": bit_accuracy(u, wanted)}
        return (relaxed - wanted).square().mean(), metrics


class CNNHPlus(CNNH):
    """CNNH whose trunk learns to classify as well: a softmax layer on z, beside the hash layer.

    Metrics: those of `CNNH`, and the ``accuracy`` of the softmax layer.

    Args:
        code_length: this and what follows as for `CNNH`.
        labels: class labels of the training set.
        random_state: seed of the factorisation.
        label_weight: weight of the cross-entropy of the labels, beside the regression to the codes.

    Example:
        >>> loss = CNNHPlus(code_length=8, labels=[0, 0, 1, 1, 2])
        >>> u, labels = 3 * loss.class_codes[:2], torch.tensor([0, 1])
        >>> loss((u, torch.zeros(2, 3)), labels)
        tensor(1.0986)
    """

    display_name = "CNNH+ (DH*-1)"
    classification_head = "z"
    label_weight: NonNegativeFloat = 1.0

    def loss_and_metrics(self, outputs: Outputs, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss of (u, logits); see `HashingLoss.forward`."""
        u, logits = outputs
        regression, metrics = super().loss_and_metrics(u, labels)
        loss = regression + self.label_weight * functional.cross_entropy(logits, labels)
        return loss, {**metrics, "accuracy": accuracy(logits, labels)}
