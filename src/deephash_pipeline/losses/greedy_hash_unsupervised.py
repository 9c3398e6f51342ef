"""GreedyHash without labels."""

from pydantic import NonNegativeFloat
from torch import Tensor

from deephash_pipeline.losses.bihalf import cosine_distortion
from deephash_pipeline.losses.hashing_loss import HashingLoss, code_metrics, signs


class GreedyHashUnsupervised(HashingLoss):
    """Codes are to have the cosines of frozen features: GreedyHash's sign and pull of |u| to 1, without its softmax.

    The loss is `cosine_distortion` of sign(u), whose gradient is taken for that of u, and weight times the mean of
    | |u| - 1 |^3 over samples and bits. It reads no label. Metrics: those of `code_metrics` for u.

    Args:
        quantisation_weight: 0.1 in the authors' code.

    Example:
        >>> import torch
        >>> loss = GreedyHashUnsupervised()
        >>> u, x = torch.tensor([[1.0, 1.0], [-1.0, 1.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
        >>> loss((u, x), torch.tensor([0, 0]))
        tensor(1.)
    """

    display_name = "GreedyHash (unsupervised)"
    reference = (
        "Su, Zhang, Han & Tian, Greedy hash: towards fast optimization for accurate hash coding in CNN, NeurIPS 2018"
    )
    reads_features = True
    supervised = False
    several_labels = True
    quantisation_weight: NonNegativeFloat = 0.1

    def loss_and_metrics(self, outputs: tuple[Tensor, Tensor], labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss of (u, features); see `HashingLoss.forward`."""
        u, features = outputs
        distortion = cosine_distortion(signs(u) + (u - u.detach()), features)
        pull = (u.abs() - 1).abs().pow(3).mean()
        return distortion + self.quantisation_weight * pull, code_metrics(u, u)
