"""CSQ, central similarity quantization (Yuan et al., CVPR 2020)."""

from typing import Literal, Self

import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.errors import InputError
from deephash_pipeline.losses.hashing_loss import HashingLoss, bit_accuracy, code_health

DRAWS = 20
"""Sets of Bernoulli centres of which the one with the largest smallest distance is kept."""


class CSQParameters(BaseModel):
    """What a user may set about CSQ.

    Attributes:
        quantisation_weight: lambda, of the mean of (|h| - 1)^2 over samples and bits; 0.05 in the authors' code.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["csq"] = "csq"
    quantisation_weight: float = Field(default=0.05, ge=0)


class CSQ(HashingLoss):
    """Every class has a fixed code, its centre c; bit k of h = tanh(u) is to be that of its class.

    A bit costs its cross-entropy, log(1 + exp(-2 c_k u_k)) as (1 + tanh u) / 2 = sigma(2 u). The authors' code adds a
    loss of pairs, which their paper does not have; neither has this one.
    """

    centres: Tensor

    def __init__(self, parameters: CSQParameters, centres: NDArray[np.float32]) -> None:
        super().__init__(parameters)
        self.register_buffer("centres", torch.from_numpy(centres))

    @classmethod
    def for_training_set(
        cls, parameters: CSQParameters, code_length: int, labels: NDArray[np.int64], seed: int
    ) -> Self:
        """Choose the centres; see `hash_centres`."""
        return cls(parameters, hash_centres(int(labels.max()) + 1, code_length, seed))

    def forward(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; watched: `code_health` of tanh(u), and ``bit_accuracy``, the share of bits as wanted."""
        relaxed = torch.tanh(u)
        wanted = self.centres[labels].to(u.dtype)
        central = -functional.logsigmoid(2 * wanted * u).mean()
        quantisation = (relaxed.abs() - 1).square().mean()
        loss = central + self.parameters_.quantisation_weight * quantisation
        return loss, {**code_health(u, relaxed), "bit_accuracy": bit_accuracy(u, wanted)}


def hash_centres(classes: int, code_length: int, seed: int) -> NDArray[np.float32]:
    """Choose codes of -1 and 1 that lie far apart, one for each class.

    Rows of a Hadamard matrix, and of its negative where they do not suffice, lie half the bits apart or all of them;
    they exist where the code length is a power of two that is at least half the number of classes. Otherwise bits are
    drawn, fair and independent: about half of them differ, too.

    Returns:
        float32 of shape (classes, code_length), no two rows alike.

    Raises:
        InputError: there are fewer codes than classes.
    """
    if classes > 2**code_length:
        raise InputError(f"{code_length} bits have fewer codes than the {classes} classes: use longer codes")
    if code_length & (code_length - 1) == 0 and classes <= 2 * code_length:
        hadamard = scipy.linalg.hadamard(code_length)
        return np.concatenate([hadamard, -hadamard])[:classes].astype(np.float32)
    generator = np.random.default_rng(seed)
    drawn = [_distinct_codes(classes, code_length, generator) for _ in range(DRAWS)]
    return max(drawn, key=smallest_distance)


def smallest_distance(centres: NDArray[np.float32]) -> int:
    """Smallest Hamming distance between two rows of -1 and 1."""
    products = centres @ centres.T
    np.fill_diagonal(products, -centres.shape[1])
    return int((centres.shape[1] - products.max()) / 2)


def _distinct_codes(classes: int, code_length: int, generator: np.random.Generator) -> NDArray[np.float32]:
    codes: dict[bytes, NDArray[np.float32]] = {}
    while len(codes) < classes:
        code = generator.choice(np.array([-1, 1], dtype=np.float32), code_length)
        codes[code.tobytes()] = code
    return np.stack(list(codes.values()))
