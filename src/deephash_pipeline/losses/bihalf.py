"""BiHalf, deep unsupervised hashing by maximising the entropy of bits."""

import torch
from pydantic import NonNegativeFloat
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.hashing_loss import HashingLoss, code_metrics


class BiHalf(HashingLoss):
    """Codes are to have the cosines of frozen features; every bit is 1 for one half of a batch, and -1 for the other.

    Sample i of a batch's first half is paired with sample i of the second: the loss is the mean of
    (cos(b_i, b_i') - cos(x_i, x_i'))^2. Bit k of b is 1 for the samples with the larger u_k. Backwards the gradient
    of b is taken for that of u, and gamma (u - b) / (n K) is added: the gradient of gamma / 2 times the mean of
    (u - b)^2, which this loss has as a term. It reads no label; of an odd batch the last sample has no partner.
    Metrics: those of `code_metrics` for u.

    The authors' code: <https://github.com/liyunqianggyn/Deep-Unsupervised-Image-Hashing>.

    Args:
        gamma: weight of the pull of u to b; 6 in the authors' code.

    Example:
        >>> loss = BiHalf(gamma=0)
        >>> u, x = torch.tensor([[0.2, 0.1], [0.1, 0.3]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
        >>> loss((u, x), torch.tensor([0, 0]))
        tensor(4.)
    """

    display_name = "BiHalf (unsupervised)"
    reference = (
        "Li & van Gemert, Deep unsupervised image hashing by maximizing bit entropy, AAAI 2021, arXiv:2012.12334"
    )
    reads_features = True
    supervised = False
    several_labels = True
    gamma: NonNegativeFloat = 6.0

    def loss_and_metrics(self, outputs: tuple[Tensor, Tensor], labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss of (u, features); see `HashingLoss.forward`."""
        u, features = outputs
        codes = half_and_half(u.detach())
        pull = self.gamma / 2 * (u - codes).square().mean()
        return cosine_distortion(codes + (u - u.detach()), features) + pull, code_metrics(u, u)


def half_and_half(u: Tensor) -> Tensor:
    """Codes whose bit k is 1 for the half of the samples with the largest u_k, else -1.

    Example:
        >>> half_and_half(torch.tensor([[0.2, 5.0], [0.1, 6.0], [0.0, 7.0], [-1.0, 8.0]]))
        tensor([[ 1., -1.],
                [ 1., -1.],
                [-1.,  1.],
                [-1.,  1.]])
    """
    upper = u.argsort(dim=0, descending=True, stable=True)[: (len(u) + 1) // 2]
    return torch.full_like(u, -1).scatter_(0, upper, 1)


def cosine_distortion(codes: Tensor, features: Tensor) -> Tensor:
    """Mean square of what the cosine of two codes lacks to that of their features, first half against second half.

    Example:
        >>> codes = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
        >>> cosine_distortion(codes, features=torch.tensor([[0.0, 2.0], [0.0, 1.0]]))
        tensor(1.)
    """
    pairs = len(codes) // 2
    of_codes, of_features = (
        functional.cosine_similarity(points[:pairs], points[pairs : 2 * pairs]) for points in (codes, features)
    )
    return (of_codes - of_features).square().sum() / max(pairs, 1)
