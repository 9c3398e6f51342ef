"""The exponentiated loss as an objective, its autograd function, and the choice of how to compute it.

There is one formula (`formula`) and there are three ways to compute it: compiled for the CPU
(`cpu`) and for CUDA devices (`cuda`), both from class labels and without any B x B
matrix; and in plain PyTorch (`tiles`) for everything else.
"""

import functools
import importlib.util
from typing import Any

import torch
from torch import Tensor

from deephash_pipeline.errors import InputError
from deephash_pipeline.losses.exponentiated import cpu, tiles
from deephash_pipeline.losses.exponentiated.formula import ExponentiatedLossParameters, LossAndGradient
from deephash_pipeline.losses.hashing_loss import HashingLoss

SATURATION = 10.0
"""|u_i u_j| above which 2 sigma - 1 is flat: its derivative is below 1e-4 of the largest."""


def supervision_matrix(labels: Tensor) -> Tensor:
    """Y of Eqn (1) from class labels (batch,): 1 for the same class, -1 for different ones, 0 on the diagonal.

    A sample paired with itself would only push |u| up (Y = 1, u_i^2 >= 0), so the diagonal counts as "otherwise".
    """
    supervision = (labels[:, None] == labels[None, :]).float() * 2 - 1
    return supervision.fill_diagonal_(0)


def exponentiated_loss_and_gradient(
    u: Tensor, supervision: Tensor, parameters: ExponentiatedLossParameters
) -> LossAndGradient:
    """Mean of the surrogate loss (Eqn 10) over the pairs of a batch and its gradient, without autograd.

    From labels, float32 and float64 on the CPU and float32 on CUDA devices with Triton take memory of
    O(batch * code_length). Each is computed in its own precision, and half precision in float32. The result does not
    depend on the number of threads.

    Args:
        u: w_k' z_i, floating, shape (batch, code_length).
        supervision: class labels, whole numbers of shape (batch,); or Y of Eqn (1), values in {-1, 0, 1}, symmetric,
            shape (batch, batch). Pairs with 0 do not count, nor does a sample with itself if labels are given.
        parameters: departures from the paper.

    Returns:
        Value, gradient and true loss, detached. The gradient treats the partial code product as a constant, as the
        paper does; it is that of the sum over ordered pairs, so it includes both slots that a sample has in its pairs.

    Raises:
        InputError: u or supervision of another shape or kind.
    """
    if u.ndim != 2 or u.shape[1] == 0 or not u.is_floating_point():
        raise InputError(f"u must be floating, (batch, code_length >= 1), got {u.dtype} {tuple(u.shape)}")
    batch = len(u)
    if tuple(supervision.shape) not in ((batch,), (batch, batch)):
        raise InputError(
            f"supervision must be labels ({batch},) or a matrix ({batch}, {batch}) for u of {batch} samples, "
            f"got shape {tuple(supervision.shape)}"
        )
    if supervision.ndim == 1 and (supervision.is_floating_point() or supervision.is_complex()):
        raise InputError(f"labels must be whole numbers, got {supervision.dtype}; convert them with `.long()`")
    given_type = u.dtype
    u = u.detach()
    if given_type not in (torch.float32, torch.float64):
        u = u.float()
    if supervision.ndim == 2:
        result = tiles.loss_and_gradient(u, supervision, parameters)
    elif u.device.type == "cpu":
        result = cpu.loss_and_gradient(u, supervision.long(), parameters)
    elif u.device.type == "cuda" and u.dtype == torch.float32 and _triton_is_installed():
        from deephash_pipeline.losses.exponentiated.cuda import loss_and_gradient  # noqa: PLC0415 - PyTorch for CPUs comes without Triton

        result = loss_and_gradient(u, supervision.long(), parameters)
    else:
        result = tiles.loss_and_gradient(u, supervision_matrix(supervision), parameters)
    return LossAndGradient(*(part.to(given_type) for part in result))


@functools.cache
def _triton_is_installed() -> bool:
    return importlib.util.find_spec("triton") is not None


class _ExponentiatedLoss(torch.autograd.Function):
    """Value of the surrogate, its gradient with respect to u and, as a by-product, the true loss (Eqn 6)."""

    @staticmethod
    def forward(
        ctx: Any, u: Tensor, supervision: Tensor, parameters: ExponentiatedLossParameters
    ) -> tuple[Tensor, Tensor]:
        value, gradient, true_loss = exponentiated_loss_and_gradient(u, supervision, parameters)
        ctx.save_for_backward(gradient)
        ctx.mark_non_differentiable(true_loss)
        return value, true_loss

    @staticmethod
    def backward(ctx: Any, *output_gradients: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * output_gradients[0], None, None


def exponentiated_loss(u: Tensor, supervision: Tensor, parameters: ExponentiatedLossParameters) -> Tensor:
    """Return the value of `exponentiated_loss_and_gradient` as a scalar that autograd can differentiate once."""
    loss: Tensor = _ExponentiatedLoss.apply(u, supervision, parameters)[0]
    return loss


class ExponentiatedLoss(HashingLoss):
    """The loss as an objective of the training loop: (u, labels) -> (loss, figures to watch)."""

    def forward(self, u: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss of a batch.

        Args:
            u: shape (batch, code_length).
            labels: int64 of shape (batch,).

        Returns:
            The surrogate, and detached scalars: ``true_loss`` (Eqn 6 on the signs, mean over pairs; 1.0 is the value of
            independent codes), ``u_standard_deviation`` and ``saturated_share`` (share of |u_i u_j| > 10, estimated
            from neighbours in the batch, which is shuffled).
        """
        loss, true_loss = _ExponentiatedLoss.apply(u, labels, self.parameters_)
        with torch.no_grad():
            saturated = (u * u.roll(1, dims=0)).abs().gt(SATURATION).to(u.dtype).mean()
            watched = {"true_loss": true_loss, "u_standard_deviation": u.std(), "saturated_share": saturated}
        return loss, watched
