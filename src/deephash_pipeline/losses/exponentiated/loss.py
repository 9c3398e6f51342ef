"""The exponentiated loss as a module, its autograd function, and the choice of how to compute it.

There is one formula (`formula`) and there are three ways to compute it: compiled for the CPU (`cpu`) and for CUDA
devices (`cuda`), both from class labels and without any B x B matrix; and in plain PyTorch (`tiles`) for the rest.
"""

import importlib.util
from typing import Any

import torch
from pydantic import PositiveFloat
from torch import Tensor

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.losses.exponentiated import cpu, tiles
from deephash_pipeline.losses.exponentiated.formula import Departures, LossAndGradient, LossScale
from deephash_pipeline.losses.hashing_loss import HashingLoss, deviation
from deephash_pipeline.losses.labels import OF_SEVERAL_LABELS, is_multi_hot
from deephash_pipeline.losses.pairs import supervision_matrix

TRITON_IS_INSTALLED = importlib.util.find_spec("triton") is not None
SATURATED_EXPONENT = 10.0
"""beta |u_i u_j| above which 2 sigma - 1 is flat: its derivative is below 2e-4 of the largest."""


class ExponentiatedLoss(HashingLoss):
    """Mean of the surrogate of exp(-Y_ij b_i o b_j) over the pairs of a batch: Eqn (10), see `reference`.

    The defaults are the paper's loss to the letter; each parameter is a named departure from it. Supervision is class
    labels; or Y of Eqn (1), values in {-1, 0, 1}, symmetric, shape (batch, batch), where pairs with 0 do not count. The
    gradient treats the partial code product as a constant, as the paper does; it is that of the sum over ordered pairs,
    so it includes both slots that a sample has in its pairs.

    From labels, float32 and float64 on the CPU and float32 on CUDA devices with Triton take memory of
    O(batch * code_length). Each is computed in its own precision, and half precision in float32. The result does not
    depend on the number of threads.

    Metrics: ``true_loss`` (Eqn 6 on the signs, mean over pairs; independent codes have about 1.0),
    ``u_standard_deviation`` and ``saturated_share`` (share of beta |u_i u_j| > 10, estimated from neighbours in
    the batch, which is shuffled).

    Args:
        loss_scale: ``paper`` keeps c and c'; ``unit`` drops the constant c and multiplies the rest by K / sinh(1/K), so
            that the gradient for one bit does not shrink with 1/K^2. The path of gradient descent is the same at a
            step size that many times smaller: it is one of the "scaling factors" which the paper discards.
        temperature: beta in sigma(beta u_i u_j). Where u is w'z it is no departure but the length of w: the loss of
            sqrt(beta) w, whose learning rate is beta times that of w.
        balance_pairs: True to give similar and dissimilar pairs half of the weight each, whatever their numbers.

    Example:
        >>> u = torch.tensor([[2.0, -1.0], [1.0, -3.0], [-1.0, 2.0]], requires_grad=True)
        >>> labels = torch.tensor([0, 0, 1])
        >>> loss = ExponentiatedLoss()
        >>> value = loss(u, labels)
        >>> value.backward()
        >>> print(f"{value:.4f}, on the signs {loss.metrics['true_loss']:.4f}")
        0.4391, on the signs 0.3679
    """

    display_name = "DeepHash (fine-tuning)"
    reference = "Mu & Liu, Deep hashing: a joint approach for image signature learning, AAAI 2017, arXiv:1608.03658"
    several_labels = True
    loss_scale: LossScale = "paper"
    temperature: PositiveFloat = 1.0
    balance_pairs: bool = False

    @property
    def departures(self) -> Departures:
        """What is not as in the paper."""
        return Departures(self.loss_scale, self.temperature, self.balance_pairs)

    def loss_and_metrics(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss; see `HashingLoss.forward`."""
        loss, true_loss = _ExponentiatedLoss.apply(u, labels, self.departures)
        with torch.no_grad():
            limit = SATURATED_EXPONENT / self.departures.temperature
            saturated = (u * u.roll(1, dims=0)).abs().gt(limit).to(u.dtype).mean()
            metrics = {"true_loss": true_loss, "u_standard_deviation": deviation(u), "saturated_share": saturated}
        return loss, metrics

    def loss_and_gradient(self, u: Tensor, supervision: Tensor) -> LossAndGradient:
        """Compute value, gradient and true loss of a batch, detached, without autograd.

        Args:
            u: w_k' z_i, floating, shape (batch, code_length).
            supervision: labels, as `forward` takes them, or Y of Eqn (1), shape (batch, batch).

        Raises:
            InputError: u or supervision of another shape or kind, or a matrix that is no Y.

        Example:
            >>> u = torch.tensor([[1.0, -1.0], [1.0, 1.0]], dtype=torch.float64)
            >>> ExponentiatedLoss().loss_and_gradient(u, torch.tensor([0, 0])).gradient
            tensor([[-0.1689, -0.0621],
                    [-0.1689,  0.0621]], dtype=torch.float64)
        """
        return _loss_and_gradient(*self.checked_batch(u, supervision), self.departures)

    def checked_batch(self, outputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """See `HashingLoss.checked_batch`; a matrix of supervision is a batch, too."""
        if labels.ndim != 2 or is_multi_hot(labels):
            return super().checked_batch(outputs, labels)
        batch = len(labels)
        outputs, _ = super().checked_batch(outputs, labels.new_zeros(batch, dtype=torch.int64))
        if labels.shape != (batch, batch):
            raise InputError(
                f"supervision must be labels ({batch},) or a matrix ({batch}, {batch}), got shape {tuple(labels.shape)}"
                f"; {OF_SEVERAL_LABELS}"
            )
        known = ((labels == 0) | (labels.abs() == 1)).all()
        # Of a batch of one class no entry is -1; whole numbers without it are taken for labels of a wrong type.
        signed = labels.is_floating_point() or (labels == -1).any()
        if not (known and signed and torch.equal(labels, labels.T)):
            raise InputError(f"a matrix of supervision must be symmetric, of -1, 0 and 1; {OF_SEVERAL_LABELS}")
        return outputs, labels


class _ExponentiatedLoss(torch.autograd.Function):
    """Value of the surrogate, its gradient with respect to u and, as a by-product, the true loss (Eqn 6)."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, supervision: Tensor, departures: Departures) -> tuple[Tensor, Tensor]:
        value, gradient, true_loss = _loss_and_gradient(u, supervision, departures)
        ctx.save_for_backward(gradient)
        ctx.mark_non_differentiable(true_loss)
        return value, true_loss

    @staticmethod
    def backward(ctx: Any, *output_gradients: Tensor) -> tuple[Tensor, None, None]:
        if torch.is_grad_enabled():
            # What is saved has no graph: a derivative of it would be wrong without a word.
            raise InputError("the exponentiated loss is differentiated once: leave out `create_graph`")
        (gradient,) = ctx.saved_tensors
        return gradient * output_gradients[0], None, None


def _loss_and_gradient(u: Tensor, supervision: Tensor, departures: Departures) -> LossAndGradient:
    u = u.detach()
    if is_multi_hot(supervision):
        supervision = supervision_matrix(supervision)
    if supervision.ndim == 2:
        return tiles.loss_and_gradient(u, supervision, departures)
    if u.device.type == "cpu":
        return cpu.loss_and_gradient(u, supervision, departures)
    if u.device.type == "cuda" and u.dtype == torch.float32 and TRITON_IS_INSTALLED:
        from deephash_pipeline.losses.exponentiated.cuda import loss_and_gradient  # noqa: PLC0415 - PyTorch for CPUs comes without Triton

        return loss_and_gradient(u, supervision, departures)
    return tiles.loss_and_gradient(u, supervision_matrix(supervision), departures)
