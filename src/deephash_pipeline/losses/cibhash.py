"""CIBHash, unsupervised hashing with a contrastive information bottleneck."""

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.hashing_loss import HashingLoss, code_metrics, signs


class CIBHash(HashingLoss):
    """Codes of two views of an image are to be nearer to each other than to those of all other images of a batch.

    A batch has every image twice, differently augmented: sample i of its first half and sample i of its second are
    views of one image. With p = sigma(u), the probability that a bit is 1, and b = sgn(p - 1/2), whose gradient is
    taken for that of p, each of the 2 n samples costs the cross-entropy of its other view among the 2 n - 1 other
    samples, the logits being cos(b_i, b_j) / tau (NT-Xent); and a pair of views costs the weight times
    (KL(p || p') + KL(p' || p)) / 2, summed over bits, where the second argument of each is a constant. The authors
    learn two layers of 4,096, 1,024 and K units on a frozen VGG-16 and crop, mirror, blur and recolour; here it is the
    hash layer alone, and the augmentation is that of the configuration. It reads no label; of an odd batch the last
    sample is left out. Metrics: those of `code_metrics` for 2 p - 1.

    The authors' code: <https://github.com/zexuanqiu/CIBHash>.

    Args:
        temperature: tau; 0.3 in the authors' code.
        divergence_weight: weight of the divergence; 0.001 there.

    Example:
        >>> loss = CIBHash(temperature=1.0)
        >>> u, z = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [1.0, 1.0], [-1.0, 1.0]]), torch.zeros(4, 3)
        >>> loss((u, z), torch.tensor([0, 1, 0, 1]))
        tensor(0.5514)
    """

    display_name = "CIBHash (unsupervised)"
    reference = (
        "Qiu, Su, Ou, Yu & Chen, Unsupervised hashing with contrastive information bottleneck, IJCAI 2021, "
        "arXiv:2105.06138"
    )
    # For the frozen trunk that it brings: z itself is not read.
    reads_features = True
    supervised = False
    several_labels = True
    views = 2
    temperature: PositiveFloat = 0.3
    divergence_weight: NonNegativeFloat = 0.001

    def loss_and_metrics(self, outputs: tuple[Tensor, Tensor], labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss of (u, features); see `HashingLoss.forward`."""
        u, _ = outputs
        p = u.sigmoid()
        pairs = len(u) // 2
        codes = functional.normalize(signs(u) + (p - p.detach()))[: 2 * pairs]
        logits = codes @ codes.T / self.temperature
        logits = logits.masked_fill(torch.eye(2 * pairs, dtype=torch.bool, device=u.device), -torch.inf)
        other_view = torch.arange(2 * pairs, device=u.device).roll(pairs)
        contrast = functional.cross_entropy(logits, other_view, reduction="sum") / max(2 * pairs, 1)
        first, second = u[:pairs], u[pairs : 2 * pairs]
        divergence = (bit_divergence(first, second) + bit_divergence(second, first)) / 2
        return contrast + self.divergence_weight * divergence, code_metrics(u, 2 * p - 1)


def bit_divergence(u: Tensor, other: Tensor) -> Tensor:
    """Mean over samples of KL(p || p'), summed over bits: bit k is 1 with probability sigma(u_k), or sigma(other_k).

    Args:
        u: log-odds of p, shape (batch, code_length).
        other: log-odds of p', a constant, same shape.

    Example:
        >>> bit_divergence(torch.tensor([[0.0, 3.0]]), torch.tensor([[2.0, 3.0]]))
        tensor(0.4338)
    """
    p, other = u.sigmoid(), other.detach()
    ones = p * (functional.logsigmoid(u) - functional.logsigmoid(other))
    zeros = (1 - p) * (functional.logsigmoid(-u) - functional.logsigmoid(-other))
    return (ones + zeros).sum() / max(len(u), 1)
