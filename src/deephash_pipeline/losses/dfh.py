"""DFH, deep Fisher hashing."""

from dataclasses import field

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import NonNegativeFloat
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.hashing_loss import code_metrics, signs
from deephash_pipeline.losses.pairs import mean_over, pair_log_odds, supervision_matrix
from deephash_pipeline.losses.sample_codes import SampleCodesLoss

DISCRETE_STEPS = 200
SLOWER_FROM = (148, 178)
"""Steps of the descent to the centres, and those from which on one goes a tenth as far: the authors' numbers."""


class DFH(SampleCodesLoss):
    """Likelihood of "similar" with a margin, and codes B that lie near to their classes' centres, which lie far apart.

    With log-odds theta = u_i . u_j / 2 a pair costs log(1 + exp(m - theta)) if it is similar, log(1 + exp(m + theta))
    if not, and a sample eta times the mean over bits of (b - u)^2, where b = sgn(mu C y + u) for its labels y. The
    centres are C = sgn(V), V found by 200 steps of descent from its last value on the means of (V y - b)^2, of
    (V'V - K (2 I - 1))^2 and of (V - sgn V)^2, in steps of min(0.03, C / (8 K)) for C classes, 0.03 in the authors'
    code. The authors do so after every batch, from that batch, and compare a batch with the last u of all training
    images; here B and V follow before each epoch from all images, and pairs are those of a batch. Metrics: those
    of `code_metrics` for u, and ``code_agreement``, the share of its signs that are the bits of B. Of an image with
    several labels C y is the sum of their centres.

    The authors' code: <https://github.com/liyunqianggyn/Push-for-Quantization-Deep-Fisher-Hashing>.

    Args:
        code_length: bits.
        labels: class labels of the training set.
        margin: m; 0 in the authors' code.
        centre_weight: mu; 1 there.
        separation_weight: weight of the second of the three means; 1 there.
        centre_quantisation_weight: weight of the third; 1 there.
        quantisation_weight: eta; 0.5 there.

    Attributes:
        relaxed_centres: V, float32 (classes, code_length); zeros before the first epoch.

    Example:
        >>> loss = DFH(code_length=2, labels=np.array([0, 1]))
        >>> u, labels = torch.tensor([[1.0, -2.0], [-1.0, 1.0]]), torch.tensor([0, 1])
        >>> loss.start_epoch(u)
        >>> loss.relaxed_centres.sign()
        tensor([[ 1., -1.],
                [-1.,  1.]])
        >>> loss.set_batch(torch.tensor([0, 1]))
        >>> loss(u, labels)
        tensor(0.3264)
    """

    display_name = "DFH"
    reference = "Li, Pei, Zha & van Gemert, Push for quantization: deep Fisher hashing, BMVC 2019, arXiv:1909.00206"
    several_labels = True
    margin: NonNegativeFloat = 0.0
    centre_weight: NonNegativeFloat = 1.0
    separation_weight: NonNegativeFloat = 1.0
    centre_quantisation_weight: NonNegativeFloat = 1.0
    quantisation_weight: NonNegativeFloat = 0.5
    relaxed_centres: Tensor = field(init=False)

    def __post_init__(self, labels: NDArray[np.int64]) -> None:
        super().__post_init__(labels)
        self.register_buffer("relaxed_centres", torch.zeros(self.has_label.shape[1], self.code_length))

    def solved(self, codes: Tensor, u: Tensor) -> Tensor:
        """Solve for B, for V with that, and for B once more."""
        codes = self._codes_near_centres(u)
        centres, (classes, code_length) = self.relaxed_centres, self.relaxed_centres.shape
        overlap, pulled = self.has_label.T @ self.has_label, self.has_label.T @ codes
        wanted = code_length * (2 * torch.eye(classes, device=u.device) - 1)
        # With few classes and long codes a step of 0.03 would leave the valley.
        size = min(0.03, classes / (8 * code_length))
        for step in range(DISCRETE_STEPS):
            intra = (overlap @ centres - pulled) / codes.numel()
            inter = 2 * (centres @ centres.T - wanted) @ centres / classes**2
            lacking = (centres - centres.sign()) / centres.numel()
            gradient = 2 * (intra + self.separation_weight * inter + self.centre_quantisation_weight * lacking)
            centres = centres - size * 0.1 ** sum(step >= first for first in SLOWER_FROM) * gradient
        self.relaxed_centres.copy_(centres)
        return self._codes_near_centres(u)

    def _codes_near_centres(self, u: Tensor) -> Tensor:
        return signs(self.centre_weight * self.has_label @ self.relaxed_centres.sign() + u)

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        codes = self.codes_of_batch(u)
        supervision = supervision_matrix(labels).to(u.dtype)
        cost = functional.softplus(self.margin - supervision * pair_log_odds(u))
        loss = mean_over(supervision.abs(), cost) + self.quantisation_weight * (codes - u).square().mean()
        return loss, {**code_metrics(u, u), "code_agreement": (codes * u >= 0).to(u.dtype).mean()}
