"""CSQ, central similarity quantization."""

from typing import Annotated

import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.errors import InputError
from deephash_pipeline.losses.hashing_loss import HashingLoss, bit_accuracy, code_metrics, codes_of, is_multi_hot
from deephash_pipeline.parameters import validated

DRAWS = 20
"""Sets of Bernoulli centres of which the one with the largest smallest distance is kept."""


class CSQ(HashingLoss):
    """Every class has a fixed code, its centre c; bit k of h = tanh(u) is to be that of its class.

    An image with several labels is drawn to the majority of their centres bit by bit, the paper's centroid; where votes
    are equal, and for an image without a label, to a bit drawn once (the paper draws it for each image).

    A bit costs its cross-entropy, log(1 + exp(-2 c_k u_k)) as (1 + tanh u) / 2 = sigma(2 u). The authors' code adds a
    loss of pairs, which their paper does not have; neither has this one. Metrics: those of `code_metrics` for tanh(u),
    and ``bit_accuracy``, the share of bits that are those of the centre.

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
    reference = "Yuan et al., Central similarity quantization for efficient image and video retrieval, CVPR 2020"
    needs = ("code_length", "classes", "random_state")
    several_labels = True
    centres: Tensor
    tied: Tensor

    @validated()
    def __init__(
        self,
        code_length: Annotated[int, Field(ge=1)],
        classes: Annotated[int, Field(ge=1)],
        random_state: Annotated[int, Field(ge=0)] = 0,
        quantisation_weight: Annotated[float, Field(ge=0)] = 0.05,
    ) -> None:
        super().__init__()
        self.quantisation_weight = quantisation_weight
        self.register_buffer("centres", torch.from_numpy(hash_centres(classes, code_length, random_state)))
        tied = np.random.default_rng([random_state, code_length]).choice(np.array([-1, 1], np.float32), code_length)
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
        if labels.shape[1] != len(self.centres):
            raise InputError(f"labels have {labels.shape[1]} classes, but the loss was made for {len(self.centres)}")
        votes = labels.float() @ self.centres
        return torch.where(votes == 0, self.tied, votes.sign())


def hash_centres(classes: int, code_length: int, random_state: int = 0) -> NDArray[np.float32]:
    """Choose codes of -1 and 1 that lie far apart, one for each class.

    Rows of a Hadamard matrix, and of its negative where they do not suffice, lie half the bits apart or all of them;
    they exist where the code length is a power of two that is at least half the number of classes. Otherwise bits are
    drawn, fair and independent: about half of them differ, too.

    Returns:
        float32 of shape (classes, code_length), no two rows alike.

    Raises:
        InputError: there are fewer codes than classes.

    Example:
        >>> hash_centres(classes=3, code_length=4)
        array([[ 1.,  1.,  1.,  1.],
               [ 1., -1.,  1., -1.],
               [ 1.,  1., -1., -1.]], dtype=float32)
    """
    require_enough_codes(classes, code_length)
    if code_length & (code_length - 1) == 0 and classes <= 2 * code_length:
        hadamard = scipy.linalg.hadamard(code_length)
        return np.concatenate([hadamard, -hadamard])[:classes].astype(np.float32)
    generator = np.random.default_rng(random_state)
    drawn = [distinct_codes(classes, code_length, generator) for _ in range(DRAWS)]
    return max(drawn, key=smallest_distance)


def smallest_distance(centres: NDArray[np.float32]) -> int:
    """Smallest Hamming distance between two rows of -1 and 1."""
    products = centres @ centres.T
    np.fill_diagonal(products, -centres.shape[1])
    return int((centres.shape[1] - products.max()) / 2)


def distinct_codes(classes: int, code_length: int, generator: np.random.Generator) -> NDArray[np.float32]:
    """Draw codes of fair, independent bits, float32 (classes, code_length) of -1 and 1, until no two are alike.

    Raises:
        InputError: there are fewer codes than classes.
    """
    require_enough_codes(classes, code_length)
    codes: dict[bytes, NDArray[np.float32]] = {}
    while len(codes) < classes:
        code = generator.choice(np.array([-1, 1], dtype=np.float32), code_length)
        codes[code.tobytes()] = code
    return np.stack(list(codes.values()))


def require_enough_codes(classes: int, code_length: int) -> None:
    """Refuse with an InputError more classes than there are codes."""
    if classes > 2**code_length:
        raise InputError(f"{code_length} bits have fewer codes than the {classes} classes: use longer codes")
