"""DSDH, deep supervised discrete hashing."""

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor

from deephash_pipeline.losses.hashing_loss import code_metrics
from deephash_pipeline.losses.pairs import pair_likelihood, pair_log_odds
from deephash_pipeline.losses.sample_codes import SampleCodesLoss


class DSDH(SampleCodesLoss):
    """Likelihood of "similar" with log-odds theta = u_i . u_j / 2, and codes B from which labels follow linearly.

    The whole is sum (log(1 + exp(theta)) - s theta) + mu |Y - B W|^2 + nu |W|^2 + eta |B - U|^2. The network descends
    the first and the last term, as means over pairs and over samples. Before each epoch W = (B'B + (nu / mu) I)^-1 B'Y,
    and bit after bit b_k = sgn(q_k - B_-k W_-k w_k') with Q = Y W' + (eta / mu) U. Metrics: those of `code_metrics` for
    u, and ``code_agreement``, the share of its signs that are the bits of B.

    The default weights are those of a re-implementation for CIFAR-10 (TreezzZ/DSDH_PyTorch), whose last term is a mean
    over bits: here, where it is a sum, the same weight is heavier by the code length. The authors' code has eta 55 and
    ridge 0.1, and solves B in each batch from 55 U + Y W'. Its pairs are a sum over n training images, here a mean, so
    that its numbers are eta = 55 / n, mu = 1 / n and nu = 0.1 / n: docs/results/field.md has both.

    The authors' code: <https://github.com/liqi-casia/DSDH-HashingCode>.

    Args:
        code_length: bits.
        labels: class labels of the training set.
        label_weight: mu.
        ridge: nu.
        quantisation_weight: eta, of the sum over bits of (b - u)^2.

    Example:
        >>> import numpy as np
        >>> loss = DSDH(code_length=2, labels=np.array([0, 1]))
        >>> u, labels = torch.tensor([[1.0, -2.0], [-1.0, 1.0]]), torch.tensor([0, 1])
        >>> loss.start_epoch(u)
        >>> loss.set_batch(torch.tensor([0, 1]))
        >>> loss(u, labels)
        tensor(0.2064)
    """

    display_name = "DSDH"
    reference = "Li, Sun, He & Tan, Deep supervised discrete hashing, NeurIPS 2017, arXiv:1705.10999"
    several_labels = True
    label_weight: PositiveFloat = 0.01
    ridge: PositiveFloat = 1.0
    quantisation_weight: NonNegativeFloat = 0.01

    def solved(self, codes: Tensor, u: Tensor) -> Tensor:
        """Solve for W, then for B bit after bit."""
        identity = torch.eye(codes.shape[1], device=codes.device)
        gram = codes.T @ codes + self.ridge / self.label_weight * identity
        weights = torch.linalg.solve(gram, codes.T @ self.has_label)
        wanted = self.has_label @ weights.T + self.quantisation_weight / self.label_weight * u
        for k in range(codes.shape[1]):
            codes[:, k] = 0
            bit = wanted[:, k] - codes @ (weights @ weights[k])
            codes[:, k] = torch.where(bit >= 0, 1.0, -1.0)
        return codes

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        codes = self.codes_of_batch(u)
        likelihood = pair_likelihood(labels, pair_log_odds(u))
        loss = likelihood + self.quantisation_weight * (codes - u).square().sum(1).mean()
        return loss, {**code_metrics(u, u), "code_agreement": (codes * u >= 0).to(u.dtype).mean()}
