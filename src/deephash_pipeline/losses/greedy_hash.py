"""GreedyHash, hash coding by a greedy principle, with labels and without."""

from pydantic import NonNegativeFloat
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.bihalf import cosine_distortion
from deephash_pipeline.losses.hashing_loss import HashingLoss, accuracy, code_metrics, signs


class GreedyHash(HashingLoss):
    """Classification by the code itself: cross-entropy of a softmax layer on sign(u), and a pull of |u| to 1.

    The sign stands in the forward pass; backwards the gradient of the code is taken for that of u. Both, and the
    softmax layer, belong to the network, which gives the logits: `deephash_pipeline.networks.ClassificationHead`.
    Metrics: those of `code_metrics` for u, and the ``accuracy`` of the softmax layer.

    The authors' code: <https://github.com/ssppp/GreedyHash>.

    Args:
        quantisation_weight: alpha, of the mean of | |u| - 1 |^3 over samples and bits; 0.1 in the authors' code for
            CIFAR-10.

    Example:
        >>> import torch
        >>> loss = GreedyHash(quantisation_weight=0)
        >>> logits = torch.tensor([[2.0, 0.0], [1.0, 0.0]])
        >>> loss((torch.tensor([[1.0, -2.0], [1.0, 1.0]]), logits), torch.tensor([0, 1]))
        tensor(0.7201)
        >>> loss.metrics["accuracy"]
        tensor(0.5000)
    """

    display_name = "GreedyHash"
    reference = (
        "Su, Zhang, Han & Tian, Greedy hash: towards fast optimization for accurate hash coding in CNN, NeurIPS 2018, "
        "https://github.com/ssppp/GreedyHash"
    )
    classification_head = "code"
    quantisation_weight: NonNegativeFloat = 0.1

    def loss_and_metrics(self, outputs: tuple[Tensor, Tensor], labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss of (u, logits); see `HashingLoss.forward`."""
        u, logits = outputs
        pull = (u.abs() - 1).abs().pow(3).mean()
        loss = functional.cross_entropy(logits, labels) + self.quantisation_weight * pull
        return loss, {**code_metrics(u, u), "accuracy": accuracy(logits, labels)}


class GreedyHashUnsupervised(HashingLoss):
    """Codes are to have the cosines of frozen features: GreedyHash's sign and pull of |u| to 1, without its softmax.

    The loss is `cosine_distortion` of sign(u), whose gradient is taken for that of u, and weight times the mean of
    | |u| - 1 |^3 over samples and bits. It reads no label. Metrics: those of `code_metrics` for u.

    The authors' code: <https://github.com/ssppp/GreedyHash>.

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
    reference = GreedyHash.reference
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
