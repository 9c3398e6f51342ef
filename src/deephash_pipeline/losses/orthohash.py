"""OrthoHash, one loss for deep hashing."""

from typing import Annotated

from pydantic import Field, PositiveFloat
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.class_centres import ClassCentresLoss, draw_distinct_codes
from deephash_pipeline.losses.hashing_loss import code_metrics
from deephash_pipeline.losses.labels import label_matrix


class OrthoHash(ClassCentresLoss):
    """Classification by the cosines of u with fixed codes of the classes, nearly orthogonal to each other.

    With cos_ik = u_i . c_k / (|u_i| |c_k|) a sample costs the cross-entropy of softmax_k s (cos_ik - m y_ik) with
    y_i / |y_i|_1, where y_ik is 1 if it has label k. Centres c are codes of fair, independent bits, drawn once. The
    authors normalise the hash layer by the batch: `HashLayerParameters.centring` and `scale`. Metrics: those of
    `code_metrics` for u scaled to the length of a code, and ``accuracy``, the share of samples whose largest cosine is
    with the centre of a label of theirs.

    The authors' code: <https://github.com/kamwoh/orthohash>.

    Args:
        code_length: bits.
        classes: number of classes.
        random_state: seed of the centres.
        margin: m; 0.2 in the authors' configuration.
        scale: s; None for the root of the code length. The authors' code has 8 by default, that root at 64 bits.

    Attributes:
        centres: float32 of shape (classes, code_length), of -1 and 1, no two rows alike.

    Raises:
        InputError: there are fewer codes than classes.

    Example:
        >>> import torch
        >>> loss = OrthoHash(code_length=16, classes=3)
        >>> labels = torch.tensor([0, 1, 2])
        >>> bool(loss(loss.centres[labels], labels) < loss(loss.centres[labels].roll(1, 0), labels))
        True
        >>> loss.metrics["accuracy"]
        tensor(0.)
    """

    display_name = "OrthoHash"
    reference = (
        "Hoe et al., One loss for all: deep hashing with a single cosine similarity based learning objective, "
        "NeurIPS 2021, arXiv:2109.14449"
    )
    several_labels = True
    choose_centres = staticmethod(draw_distinct_codes)
    margin: Annotated[float, Field(ge=0, lt=2)] = 0.2
    scale: PositiveFloat | None = None

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        own = label_matrix(labels, len(self.centres)).to(u.dtype)
        direction = functional.normalize(u)
        cosines = direction @ functional.normalize(self.centres.to(u.dtype)).T
        target = own / own.sum(1, keepdim=True).clamp_min(1)
        scale = self.scale or u.shape[1] ** 0.5
        loss = functional.cross_entropy(scale * (cosines - self.margin * own), target)
        right = own.gather(1, cosines.argmax(1, keepdim=True)).mean().detach()
        return loss, {**code_metrics(u, direction * u.shape[1] ** 0.5), "accuracy": right}
