"""DNNH, simultaneous feature learning and hash coding: the paper's DH-3."""

from typing import Annotated

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from deephash_pipeline.losses.hashing_loss import HashingLoss, code_metrics
from deephash_pipeline.losses.pairs import shares_a_label


class DNNH(HashingLoss):
    """Triplet loss on soft bits: max(0, |g - g+|^2 - |g - g-|^2 + margin).

    A soft bit is g = sigma(u) where that is within epsilon of 0.5, else 0 or 1. The paper draws triplets of images
    beforehand; here every ordered pair of a class in the batch is one, with a negative of `semi_hard_negatives`. Its
    divide-and-encode module is the hash layer's: `HashLayerParameters.features_per_bit`. Metrics: those of
    `code_metrics` for 2g - 1, and the ``active_share`` of triplets that cost.

    Args:
        epsilon: half of the interval around 0.5 outside which the bit of a piece of the features counts as settled, and
            has no gradient. "Small" in the paper, which gives no number; 0.5 settles nothing.
        margin: squared distance by which a dissimilar image is to be farther than a similar one; 1 in the paper.

    Example:
        >>> loss = DNNH()
        >>> loss(torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]), torch.tensor([0, 0, 1]))
        tensor(0.7864)
        >>> loss.metrics["active_share"]
        tensor(1.)
    """

    display_name = "DNNH (DH-3)"
    reference = (
        "Lai, Pan, Liu & Yan, Simultaneous feature learning and hash coding with deep neural networks, CVPR 2015, "
        "arXiv:1504.03410"
    )
    several_labels = True
    epsilon: Annotated[float, Field(gt=0, le=0.5)] = 0.4
    margin: PositiveFloat = 1.0

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        soft = soft_bits(u, self.epsilon)
        distances = pairwise_squared_distances(soft)
        same = shares_a_label(labels)
        triplets = same & ~torch.eye(len(labels), dtype=torch.bool, device=u.device) & ~same.all(1, keepdim=True)
        negatives = distances.gather(1, semi_hard_negatives(distances.detach(), same))
        cost = (distances - negatives + self.margin).clamp_min(0) * triplets
        count = triplets.sum().clamp_min(1)
        active = (cost.detach() > 0).sum() / count
        return cost.sum() / count, {**code_metrics(u, 2 * soft - 1), "active_share": active}


def soft_bits(u: Tensor, epsilon: float) -> Tensor:
    """Sigmoid and piecewise threshold of the divide-and-encode module.

    Example:
        >>> soft_bits(torch.tensor([0.0, 5.0, -5.0]), epsilon=0.4)
        tensor([0.5000, 1.0000, 0.0000])
    """
    sigma = torch.sigmoid(u)
    return torch.where((sigma - 0.5).abs() <= epsilon, sigma, (u > 0).to(u.dtype))


def pairwise_squared_distances(points: Tensor) -> Tensor:
    """Squared Euclidean distances (batch, batch) between the rows of (batch, dimension).

    Example:
        >>> pairwise_squared_distances(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
        tensor([[ 0., 25.],
                [25.,  0.]])
    """
    squares = points.square().sum(1)
    return squares[:, None] + squares[None] - 2 * points @ points.T


def semi_hard_negatives(distances: Tensor, same: Tensor) -> Tensor:
    """Choose a negative for each anchor and positive, as FaceNet does (Schroff et al., 2015).

    Args:
        distances: shape (batch, batch).
        same: True if two samples are similar, bool (batch, batch).

    Returns:
        int64 (batch, batch): for anchor i and positive j the nearest of the negatives of i that are farther from it
        than j; where none is, the farthest. Without meaning in rows that have no negative.

    Example:
        >>> same = torch.tensor([[True, True, False, False]] * 2 + [[False, False, True, True]] * 2)
        >>> of_first = [[0.0, 2.0, 1.0, 3.0], [2.0, 0.0, 5.0, 6.0]]
        >>> distances = torch.tensor([*of_first, [1.0, 5.0, 0.0, 4.0], [3.0, 6.0, 4.0, 0.0]])
        >>> int(semi_hard_negatives(distances, same)[0, 1])
        3
    """
    to_negatives, order = distances.masked_fill(same, torch.inf).sort(dim=1, stable=True)
    first_farther = torch.searchsorted(to_negatives, distances.contiguous(), right=True)
    last = (~same).sum(1, keepdim=True) - 1
    return order.gather(1, first_farther.minimum(last).clamp_min(0))
