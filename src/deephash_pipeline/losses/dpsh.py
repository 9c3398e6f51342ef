"""DPSH, deep pairwise-supervised hashing."""

from pydantic import NonNegativeFloat
from torch import Tensor

from deephash_pipeline.losses.hashing_loss import HashingLoss, code_metrics, signs
from deephash_pipeline.losses.pairs import pair_likelihood, pair_log_odds


class DPSH(HashingLoss):
    """Negative log-likelihood of "same class" with log-odds theta = u_i . u_j / 2, and the distance of u to its signs.

    A pair costs log(1 + exp(-Y theta)), Y of 1 within a class and -1 across. The mean is over the pairs of a batch,
    both of whose samples are variables; the authors pair a batch with codes of the whole set, kept from earlier steps.
    DeepHash-pytorch is <https://github.com/swuxyj/DeepHash-pytorch>.
    Metrics: those of `code_metrics`, with u itself for the relaxed code.

    Args:
        quantisation_weight: eta, of the mean square of u - sign(u) over samples and bits. The authors' 10 goes with
            sums over 5,000 images; at 48 bits that is the 0.1 of DeepHash-pytorch, which is the default here.

    Example:
        >>> import torch
        >>> loss = DPSH(quantisation_weight=0.5)
        >>> loss(torch.tensor([[1.0, -2.0], [1.0, 1.0]]), torch.tensor([0, 1]))
        tensor(0.5991)
        >>> loss.metrics["quantisation_error"]
        tensor(0.2500)
    """

    display_name = "DPSH"
    reference = (
        "Li, Wang & Kang, Feature learning based deep supervised hashing with pairwise labels, IJCAI 2016, "
        "arXiv:1511.03855"
    )
    several_labels = True
    quantisation_weight: NonNegativeFloat = 0.1

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        likelihood = pair_likelihood(labels, pair_log_odds(u))
        quantisation = (u - signs(u)).square().mean()
        return likelihood + self.quantisation_weight * quantisation, code_metrics(u, u)
