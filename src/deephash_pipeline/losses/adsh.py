"""ADSH, asymmetric deep supervised hashing."""

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import NonNegativeFloat
from torch import Tensor

from deephash_pipeline.losses.hashing_loss import code_metrics
from deephash_pipeline.losses.labels import codes_of
from deephash_pipeline.losses.sample_codes import SampleCodesLoss


class ADSH(SampleCodesLoss):
    """Products of h = tanh(u) of a batch with codes V of the whole training set are K within a class, -r K across.

    A pair of image i and code j costs (h_i . V_j - K S_ij)^2, S of 1 or -r, r the ratio of similar to dissimilar pairs;
    gamma |V_i - h_i|^2 is added, and all is divided by the pairs, and here by K^2, which is the learning rate's. Before
    each epoch V is solved for bit after bit, V_k = -sgn(2 V_-k H_-k' h_k - 2 K S' h_k - 2 gamma h_k); the authors draw
    2,000 images for three epochs each, here all take part. The codes of a search are the network's, of queries and
    database, never V, which labels alone could make. Metrics: those of `code_metrics` for h, and ``code_agreement``,
    the share of signs of u that are the bits of V.

    The authors' code: <https://github.com/jiangqy/ADSH-AAAI2018>.

    Args:
        code_length: bits.
        labels: class labels of the training set.
        gamma: 200 in the authors' code.

    Example:
        >>> loss = ADSH(code_length=2, labels=np.array([0, 1]))
        >>> u, labels = torch.tensor([[9.0, -9.0], [-9.0, 9.0]]), torch.tensor([0, 1])
        >>> loss.start_epoch(u)
        >>> loss.set_batch(torch.tensor([0, 1]))
        >>> bool(loss(u, labels) < 1e-9)
        True
    """

    display_name = "ADSH"
    reference = "Jiang & Li, Asymmetric deep supervised hashing, AAAI 2018, arXiv:1707.08325"
    gamma: NonNegativeFloat = 200.0

    def __post_init__(self, labels: NDArray[np.int64]) -> None:
        super().__post_init__(labels)
        similar = float(self.has_label.sum(0).square().sum())
        self.ratio = similar / max(len(self.has_label) ** 2 - similar, 1.0)

    def solved(self, codes: Tensor, u: Tensor) -> Tensor:
        """Solve for V bit after bit; S' H comes from the sums of H over the classes."""
        h = torch.tanh(u)
        pulls = self.has_label @ self.pulls_of_classes(h)
        linear = -2 * codes.shape[1] * pulls - 2 * self.gamma * h
        gram = h.T @ h
        for k in range(codes.shape[1]):
            codes[:, k] = 0
            codes[:, k] = torch.where(2 * codes @ gram[:, k] + linear[:, k] <= 0, 1.0, -1.0)
        return codes

    def pulls_of_classes(self, rows: Tensor) -> Tensor:
        """Sums S' X of rows X, one for each image, as an image of each class has them: (classes, code_length)."""
        return (1 + self.ratio) * (self.has_label.to(rows.dtype).T @ rows) - self.ratio * rows.sum(0)

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        own = self.codes_of_batch(u)
        h, codes = torch.tanh(u), self.codes.to(u.dtype)
        # The squares of the (batch, images) products multiplied out, so that nothing of this size is made.
        pulls = codes_of(labels, self.pulls_of_classes(codes))
        costs = (h @ (codes.T @ codes) * h - 2 * u.shape[1] * pulls * h).sum()
        same = self.has_label.sum(0)[labels].to(u.dtype).sum()
        wanted = same + self.ratio**2 * (len(u) * len(codes) - same)
        costs = costs + u.shape[1] ** 2 * wanted + self.gamma * (own - h).square().sum()
        loss = costs / (len(u) * len(codes) * u.shape[1] ** 2)
        return loss, {**code_metrics(u, h), "code_agreement": (own * u >= 0).to(u.dtype).mean()}
