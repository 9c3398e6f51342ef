"""Pairs of a batch: which of them are similar, what u says of that, and means over them."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.labels import is_multi_hot


def shares_a_label(labels: Tensor) -> Tensor:
    """Which samples are similar: those of one class or, where each has any number of labels, with one in common.

    Args:
        labels: class numbers (batch,), or multi-hot (batch, classes), uint8 or bool.

    Returns:
        bool (batch, batch); a sample is similar to itself, even without a label.

    Example:
        >>> shares_a_label(torch.tensor([[1, 1, 0], [0, 1, 0], [0, 0, 0]], dtype=torch.uint8))
        tensor([[ True,  True, False],
                [ True,  True, False],
                [False, False,  True]])
    """
    if not is_multi_hot(labels):
        return labels[:, None] == labels[None, :]
    # Counts of shared labels are exact in float32.
    has_label = labels.float()
    return (has_label @ has_label.T > 0).fill_diagonal_(True)


def supervision_matrix(labels: Tensor) -> Tensor:
    """Y of Eqn (1) from labels: 1 for samples that share one (`shares_a_label`), -1 for others, 0 on the diagonal.

    A sample paired with itself would only push |u| up (Y = 1, u_i^2 >= 0), so the diagonal counts as "otherwise".

    Returns:
        float32 of shape (batch, batch).

    Example:
        >>> supervision_matrix(torch.tensor([4, 4, 7]))
        tensor([[ 0.,  1., -1.],
                [ 1.,  0., -1.],
                [-1., -1.,  0.]])
    """
    supervision = shares_a_label(labels).float() * 2 - 1
    return supervision.fill_diagonal_(0)


def pair_log_odds(u: Tensor) -> Tensor:
    """theta_ij = u_i . u_j / 2, (batch, batch): the log-odds of "similar" of DPSH and those that follow it.

    Example:
        >>> pair_log_odds(torch.tensor([[1.0, -1.0], [1.0, 1.0]]))
        tensor([[1., 0.],
                [0., 1.]])
    """
    return u @ u.T / 2


def pair_likelihood(labels: Tensor, log_odds: Tensor) -> Tensor:
    """Mean over pairs of log(1 + exp(-Y theta)), Y of 1 for similar pairs and -1 for others.

    Args:
        labels: labels, as `shares_a_label` takes them.
        log_odds: theta, (batch, batch).

    Example:
        >>> pair_likelihood(torch.tensor([0, 0]), torch.zeros(2, 2))
        tensor(0.6931)
    """
    supervision = supervision_matrix(labels).to(log_odds.dtype)
    return mean_over(supervision.abs(), -functional.logsigmoid(supervision * log_odds))


def balanced_mean(similar: Tensor, cost: Tensor) -> Tensor:
    """Mean cost of similar pairs plus that of dissimilar ones, so that both kinds weigh the same; no i with itself.

    Args:
        similar: bool (batch, batch).
        cost: (batch, batch).

    Example:
        >>> similar = torch.tensor([[True, True, False], [True, True, False], [False, False, True]])
        >>> balanced_mean(similar, torch.tensor([[9.0, 1.0, 2.0], [1.0, 9.0, 2.0], [2.0, 2.0, 9.0]]))
        tensor(3.)
    """
    itself = torch.eye(len(similar), dtype=torch.bool, device=similar.device)
    return mean_over((similar & ~itself).to(cost.dtype), cost) + mean_over((~similar & ~itself).to(cost.dtype), cost)


def mean_over(pairs: Tensor, cost: Tensor) -> Tensor:
    """Mean of a cost (batch, batch) over the pairs marked by 1, others being marked by 0; 0 where there are none.

    Within `weighing` it is the weighted mean.

    Example:
        >>> mean_over(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[9.0, 2.0], [4.0, 9.0]]))
        tensor(3.)
    """
    weights = _WEIGHTS.get()
    if weights is None:
        return (pairs * cost).sum() / pairs.sum().clamp_min(1)
    weights.were_read = True
    pairs = pairs * weights.of_pairs.to(cost.dtype)
    total = pairs.sum()
    return (pairs * cost).sum() / torch.where(total > 0, total, torch.ones_like(total))


@dataclass
class PairWeights:
    """Weights of the pairs of a batch, (batch, batch), and whether a loss has read them."""

    of_pairs: Tensor
    were_read: bool = False


_WEIGHTS: ContextVar[PairWeights | None] = ContextVar("pair weights", default=None)


@contextmanager
def weighing(of_pairs: Tensor | None) -> Iterator[PairWeights | None]:
    """Weigh the pairs of `mean_over`, through which every loss of pairs takes its means; None for equal weights.

    Example:
        >>> with weighing(torch.tensor([[0.0, 3.0], [1.0, 0.0]])):
        ...     mean_over(torch.ones(2, 2), torch.tensor([[9.0, 2.0], [4.0, 9.0]]))
        tensor(2.5000)
    """
    weights = None if of_pairs is None else PairWeights(of_pairs)
    token = _WEIGHTS.set(weights)
    try:
        yield weights
    finally:
        _WEIGHTS.reset(token)
