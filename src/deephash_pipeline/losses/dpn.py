"""DPN, deep polarized network."""

from pydantic import PositiveFloat
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.losses.class_centres import ClassCentresLoss, draw_distinct_codes
from deephash_pipeline.losses.hashing_loss import bit_accuracy, code_metrics
from deephash_pipeline.losses.labels import label_matrix


class DPN(ClassCentresLoss):
    """Polarisation: bit k of u lies beyond a margin on the side of the class's centre c, max(0, m - c_k u_k).

    Of several labels each pulls, and costs are added up. The mean is over samples and bits; the authors add the bits
    up, a factor that is the learning rate's. Centres are codes of fair, independent bits, drawn once. Metrics: those of
    `code_metrics` for u, and ``bit_accuracy``, the share of bits on the side of most labels.

    Code of one of the authors: <https://github.com/kamwoh/DPN>.

    Args:
        code_length: bits.
        classes: number of classes.
        random_state: seed of the centres.
        margin: m; 1 in the paper.

    Attributes:
        centres: float32 of shape (classes, code_length), of -1 and 1, no two rows alike.

    Raises:
        InputError: there are fewer codes than classes.

    Example:
        >>> import torch
        >>> loss = DPN(code_length=4, classes=3)
        >>> labels = torch.tensor([0, 1, 2])
        >>> loss(0.75 * loss.centres[labels], labels)
        tensor(0.2500)
    """

    display_name = "DPN"
    reference = (
        "Fan et al., Deep polarized network for supervised learning of accurate binary hashing codes, IJCAI 2020, "
        "doi:10.24963/ijcai.2020/115"
    )
    several_labels = True
    choose_centres = staticmethod(draw_distinct_codes)
    margin: PositiveFloat = 1.0

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        own = label_matrix(labels, len(self.centres)).to(u.dtype)
        for_one = own @ (self.centres > 0).to(u.dtype)
        for_minus_one = own @ (self.centres < 0).to(u.dtype)
        cost = for_one * functional.relu(self.margin - u) + for_minus_one * functional.relu(self.margin + u)
        wanted = (for_one >= for_minus_one).to(u.dtype) * 2 - 1
        return cost.mean(), {**code_metrics(u, u), "bit_accuracy": bit_accuracy(u, wanted)}
