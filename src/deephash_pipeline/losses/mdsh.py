"""MDSH, deep hashing with minimal-distance-separated hash centres."""

import torch
from pydantic import PositiveFloat
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.class_centres import ClassCentresLoss, separated_centres
from deephash_pipeline.losses.hashing_loss import accuracy, code_metrics
from deephash_pipeline.losses.labels import label_matrix


class MDSH(ClassCentresLoss):
    """Softmax over the cosines of u with codes of the classes that keep a smallest distance, each class by itself.

    With p_k = softmax_k sqrt(K) cos(u, c_k) a sample costs -10 times the mean over classes of log p_k for its own class
    and log(1 - p_k) for the others. The centres are drawn one by one, each at least as far from all before it as the
    bound of Gilbert and Varshamov allows; the authors optimise theirs. Of the three terms of the authors' loss this is
    the first; those of pairs and of quantisation are left out. Metrics: those of `code_metrics` for u scaled to
    the length of a code, and ``accuracy``.

    Args:
        code_length: bits.
        classes: number of classes.
        random_state: seed of the centres.
        weight: weight of the whole; 10 in the authors' code.

    Attributes:
        centres: float32 of shape (classes, code_length), of -1 and 1.

    Raises:
        InputError: there are fewer codes than classes.

    Example:
        >>> loss = MDSH(code_length=16, classes=3)
        >>> labels = torch.tensor([0, 1, 2])
        >>> bool(loss(loss.centres[labels], labels) < 1)
        True
    """

    display_name = "MDSH"
    reference = (
        "Wang et al., Deep hashing with minimal-distance-separated hash centers, CVPR 2023, "
        "doi:10.1109/CVPR52729.2023.02246"
    )
    choose_centres = staticmethod(separated_centres)
    weight: PositiveFloat = 10.0

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        centres = self.centres.to(u.dtype)
        own = label_matrix(labels, len(centres)).bool()
        direction = functional.normalize(u)
        logits = u.shape[1] ** 0.5 * (direction @ functional.normalize(centres).T)
        log_p = logits.log_softmax(1)
        # log(1 - p), kept finite where a class is certain.
        log_rest = torch.log1p(-log_p.exp().clamp_max(1 - 1e-6))
        loss = -self.weight * torch.where(own, log_p, log_rest).mean()
        metrics = {**code_metrics(u, direction * u.shape[1] ** 0.5), "accuracy": accuracy(logits, labels)}
        return loss, metrics
