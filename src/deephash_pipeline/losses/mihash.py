"""MIHash, hashing with mutual information."""

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.hashing_loss import HashingLoss, code_metrics
from deephash_pipeline.losses.pairs import shares_a_label


class MIHash(HashingLoss):
    """Mutual information of a Hamming distance and of "similar", by soft histograms of the distances of each anchor.

    With phi = tanh(a u) distances are d_ij = (K - phi_i . phi_j) / 2, counted in bins with centres l K / b, l = 0..b,
    by max(0, 1 - |d - centre| b / K). For an anchor H is the entropy of such a histogram and p the share of similar
    samples; the loss is the mean over anchors of -(H(d) - p H(d | similar) - (1 - p) H(d | dissimilar)), in nats.
    Metrics: those of `code_metrics` for phi.

    Args:
        bins: b; the authors take 12 to 32.
        slope: a; the authors tune it between 1 and 40, with the sigmoid, 2 sigma(a u) - 1 = tanh(a u / 2): their number
            is twice this one.

    Example:
        >>> loss = MIHash()
        >>> u = torch.tensor([[9.0, 9.0], [9.0, 9.0], [-9.0, -9.0], [-9.0, -9.0]])
        >>> loss(u, torch.tensor([0, 0, 1, 1]))
        tensor(-0.6365)
    """

    display_name = "MIHash"
    reference = (
        "Cakir, He, Bargal & Sclaroff, MIHash: online hashing with mutual information, ICCV 2017, arXiv:1703.08919"
    )
    several_labels = True
    bins: PositiveInt = 16
    slope: PositiveFloat = 1.0

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        phi = torch.tanh(self.slope * u)
        similar = shares_a_label(labels)
        others = ~torch.eye(len(u), dtype=torch.bool, device=u.device)
        width = u.shape[1] / self.bins
        distances = (u.shape[1] - phi @ phi.T) / 2
        centres = torch.arange(self.bins + 1, dtype=u.dtype, device=u.device) * width
        counts = functional.relu(1 - (distances[:, :, None] - centres).abs() / width)
        near, far = (_histogram(counts, pairs) for pairs in (similar & others, ~similar & others))
        share = (similar & others).to(u.dtype).sum(1) / max(len(u) - 1, 1)
        of_all = share[:, None] * near + (1 - share)[:, None] * far
        information = _entropy(of_all) - share * _entropy(near) - (1 - share) * _entropy(far)
        return -information.mean(), code_metrics(u, phi)


def _histogram(counts: Tensor, pairs: Tensor) -> Tensor:
    """Share of the marked pairs of each anchor in each bin, (batch, bins + 1); zeros where there are none."""
    marked = pairs.to(counts.dtype)
    return torch.einsum("ijl,ij->il", counts, marked) / marked.sum(1, keepdim=True).clamp_min(1)


def _entropy(histogram: Tensor) -> Tensor:
    return -(histogram * histogram.clamp_min(1e-12).log()).sum(1)
