"""MDSH, deep hashing with minimal-distance-separated hash centres."""

import math
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.csq import require_enough_codes
from deephash_pipeline.losses.hashing_loss import HashingLoss, accuracy, code_metrics, codes_of
from deephash_pipeline.parameters import validated


class MDSH(HashingLoss):
    """Softmax over the cosines of u with codes of the classes that keep a smallest distance, each class by itself.

    With p_k = softmax_k sqrt(K) cos(u, c_k) a sample costs -10 times the mean over classes of log p_k for its own class
    and log(1 - p_k) for the others. The centres are drawn one by one, each at least as far from all before it as the
    bound of Gilbert and Varshamov allows; the authors optimise theirs. Metrics: those of `code_metrics` for u scaled to
    the length of a code, and ``accuracy``.

    Args:
        code_length: bits.
        classes: number of classes.
        random_state: seed of the centres.
        weight: of the whole; 10 in the authors' code.

    Attributes:
        centres: float32 of shape (classes, code_length), of -1 and 1.

    Raises:
        InputError: there are fewer codes than classes.

    Example:
        >>> loss = MDSH(code_length=16, classes=3)
        >>> labels = torch.tensor([0, 1, 2])
        >>> bool(loss(loss.centres[labels], labels) < 1)
        True
    """

    display_name = "MDSH"
    reference = "Wang et al., Deep hashing with minimal-distance-separated hash centers, CVPR 2023"
    needs = ("code_length", "classes", "random_state")
    centres: Tensor

    @validated()
    def __init__(
        self,
        code_length: Annotated[int, Field(ge=1)],
        classes: Annotated[int, Field(ge=1)],
        random_state: Annotated[int, Field(ge=0)] = 0,
        weight: Annotated[float, Field(gt=0)] = 10.0,
    ) -> None:
        super().__init__()
        self.weight = weight
        self.register_buffer("centres", torch.from_numpy(separated_centres(classes, code_length, random_state)))

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        centres = self.centres.to(u.dtype)
        own = codes_of(labels, torch.eye(len(centres), dtype=torch.bool, device=u.device))
        direction = functional.normalize(u)
        logits = u.shape[1] ** 0.5 * (direction @ functional.normalize(centres).T)
        log_p = logits.log_softmax(1)
        # log(1 - p), kept finite where a class is certain.
        log_rest = torch.log1p(-log_p.exp().clamp_max(1 - 1e-6))
        loss = -self.weight * torch.where(own, log_p, log_rest).mean()
        metrics = {**code_metrics(u, direction * u.shape[1] ** 0.5), "accuracy": accuracy(logits, labels)}
        return loss, metrics


def gilbert_varshamov_distance(classes: int, code_length: int) -> int:
    """Smallest distance that codes of so many classes surely can keep: any fewer codes leave room for one more.

    Example:
        >>> gilbert_varshamov_distance(classes=10, code_length=48)
        20
    """
    taken, distance = 0, 0
    while (
        distance <= code_length and (classes - 1) * (taken := taken + math.comb(code_length, distance)) < 2**code_length
    ):
        distance += 1
    return distance


def separated_centres(classes: int, code_length: int, random_state: int) -> NDArray[np.float32]:
    """Draw codes until there is one for each class that lies far enough from all before it.

    Returns:
        float32 of shape (classes, code_length), of -1 and 1.

    Raises:
        InputError: there are fewer codes than classes.
    """
    require_enough_codes(classes, code_length)
    generator = np.random.default_rng(random_state)
    distance = gilbert_varshamov_distance(classes, code_length)
    centres = np.empty((0, code_length), dtype=np.float32)
    while len(centres) < classes:
        drawn = generator.choice(np.array([-1, 1], dtype=np.float32), code_length)
        if (code_length - centres @ drawn >= 2 * distance).all():
            centres = np.concatenate([centres, drawn[None]])
    return centres
