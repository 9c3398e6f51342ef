"""CSQ, central similarity quantization."""

from dataclasses import field

import numpy as np
import torch
from pydantic import NonNegativeFloat
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.class_centres import ClassCentresLoss
from deephash_pipeline.losses.hashing_loss import bit_accuracy, code_metrics
from deephash_pipeline.losses.labels import codes_of, is_multi_hot, label_matrix


class CSQ(ClassCentresLoss):
    """Every class has a fixed code, its centre c; bit k of h = tanh(u) is to be that of its class.

    An image with several labels is drawn to the majority of their centres bit by bit, the paper's centroid; where votes
    are equal, and for an image without a label, to a bit drawn once (the paper draws it for each image).

    A bit costs its cross-entropy, log(1 + exp(-2 c_k u_k)) as (1 + tanh u) / 2 = sigma(2 u). The authors' code adds a
    loss of pairs, which their paper does not have; neither has this one. Metrics: those of `code_metrics` for tanh(u),
    and ``bit_accuracy``, the share of bits that are those of the centre.

    The authors' code: <https://github.com/yuanli2333/Hadamard-Matrix-for-hashing>.

    Args:
        code_length: bits.
        classes: number of classes.
        random_state: seed of the centres where they are drawn; see `hash_centres`.
        quantisation_weight: lambda, of the mean of (|h| - 1)^2 over samples and bits; 0.05 in the authors' code.

    Attributes:
        centres: float32 of shape (classes, code_length), of -1 and 1.

    Raises:
        InputError: there are fewer codes than classes.

    Example:
        >>> loss = CSQ(code_length=4, classes=3)
        >>> labels = torch.tensor([0, 1, 2])
        >>> loss(3 * loss.centres[labels], labels)
        tensor(0.0025)
        >>> loss.metrics["bit_accuracy"]
        tensor(1.)
    """

    display_name = "CSQ"
    reference = (
        "Yuan et al., Central similarity quantization for efficient image and video retrieval, CVPR 2020, "
        "arXiv:1908.00347"
    )
    several_labels = True
    quantisation_weight: NonNegativeFloat = 0.05
    tied: Tensor = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        bits = np.array([-1, 1], np.float32)
        tied = np.random.default_rng([self.random_state, self.code_length]).choice(bits, self.code_length)
        self.register_buffer("tied", torch.from_numpy(tied), persistent=False)

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        relaxed = torch.tanh(u)
        wanted = self.centres_of(labels).to(u.dtype)
        central = -functional.logsigmoid(2 * wanted * u).mean()
        quantisation = (relaxed.abs() - 1).square().mean()
        loss = central + self.quantisation_weight * quantisation
        return loss, {**code_metrics(u, relaxed), "bit_accuracy": bit_accuracy(u, wanted)}

    def centres_of(self, labels: Tensor) -> Tensor:
        """Code that each sample is drawn to, (batch, code_length), of -1 and 1."""
        if not is_multi_hot(labels):
            return codes_of(labels, self.centres)
        votes = label_matrix(labels, len(self.centres)) @ self.centres
        return torch.where(votes == 0, self.tied, votes.sign())
