"""Losses to compare with: the exponentiated loss in simpler ways, and the losses of other methods.

Every function maps (u, labels) to a scalar for autograd. Those of other methods are written from their papers with the
bank of codes that DeepHash-pytorch keeps: u against all items seen, which are no variables. Here the bank is the batch.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.processes import MEBIBYTE, process_bytes
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.losses import ExponentiatedLoss, supervision_matrix
from deephash_pipeline.losses.exponentiated.tiles import loss_and_gradient

Loss = Callable[[Tensor, Tensor], Tensor]

FAITHFUL = ExponentiatedLoss()
DPSH_QUANTISATION_WEIGHT, DSH_QUANTISATION_WEIGHT, HASHNET_SIGMOID = 0.1, 0.01, 10.0
CLASSES, FEW_SAMPLES = 10, 40


def fused(u: Tensor, labels: Tensor) -> Tensor:
    """The project's loss as training uses it: from labels, by the kernel for the device."""
    value: Tensor = FAITHFUL(u, labels)
    return value


class _Tiles(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, labels: Tensor) -> Tensor:
        value, gradient, _ = loss_and_gradient(u.detach(), supervision_matrix(labels).to(u.dtype), FAITHFUL.departures)
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return ctx.saved_tensors[0] * upstream, None


# The analytic gradient in plain PyTorch, tile by tile.
tiles: Loss = _Tiles.apply


def _constants(u: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, float, Tensor]:
    y, b = supervision_matrix(labels), torch.where(u.detach() >= 0, 1.0, -1.0)
    return y, b, math.cosh(1 / u.shape[1]), -math.sinh(1 / u.shape[1]) * y


def naive(u: Tensor, labels: Tensor) -> Tensor:
    """The paper's formulas over all pairs and bits at once, differentiated by autograd."""
    y, b, c, c_prime = _constants(u, labels)
    partial_code_product = ((b @ b.T)[..., None] - b[:, None] * b[None]) / u.shape[1]
    surrogate = 2 * torch.sigmoid(u[:, None] * u[None]) - 1
    losses = torch.exp(-y[..., None] * partial_code_product) * (c + c_prime[..., None] * surrogate)
    return (losses.mean(-1) * y.abs()).sum() / y.abs().sum()


def bit_by_bit(u: Tensor, labels: Tensor) -> Tensor:
    """The same in a loop over bits, one batch x batch matrix each."""
    y, b, c, c_prime = _constants(u, labels)
    code_product, total = b @ b.T / u.shape[1], u.new_zeros(())
    for bit in range(u.shape[1]):
        weights = torch.exp(-y * (code_product - torch.outer(b[:, bit], b[:, bit]) / u.shape[1])) * y.abs()
        surrogate = 2 * torch.sigmoid(torch.outer(u[:, bit], u[:, bit])) - 1
        total = total + (weights * (c + c_prime * surrogate)).sum()
    return total / (u.shape[1] * y.abs().sum())


def _likelihood(products: Tensor, similar: Tensor) -> Tensor:
    return torch.log1p(torch.exp(-products.abs())) + products.clamp(min=0) - similar * products


def hashnet(u: Tensor, labels: Tensor) -> Tensor:
    """HashNet (Cao et al. 2017): weighted maximum likelihood on tanh of u."""
    codes, similar = torch.tanh(u), (labels[:, None] == labels).float()
    likelihood = _likelihood(HASHNET_SIGMOID / u.shape[1] * codes @ codes.detach().T, similar)
    pairs, similar_pairs = similar.numel(), similar.sum()
    weights = torch.where(similar > 0, pairs / similar_pairs, pairs / (pairs - similar_pairs).clamp(min=1))
    return (weights * likelihood).mean()


def dpsh(u: Tensor, labels: Tensor) -> Tensor:
    """DPSH (Li et al. 2016): pairwise likelihood of inner products, and the distance to signs."""
    likelihood = _likelihood(0.5 * u @ u.detach().T, (labels[:, None] == labels).float())
    return likelihood.mean() + DPSH_QUANTISATION_WEIGHT * (u - u.detach().sign()).square().mean()


def dsh(u: Tensor, labels: Tensor) -> Tensor:
    """DSH (Liu et al. 2016): contrastive loss on squared distances with a margin of two bits for each bit."""
    distances = (u[:, None] - u.detach()[None]).square().sum(2)
    different = (labels[:, None] != labels).float()
    contrastive = (1 - different) / 2 * distances + different / 2 * (2 * u.shape[1] - distances).clamp(min=0)
    return contrastive.mean() + DSH_QUANTISATION_WEIGHT * (1 - u.abs()).abs().mean()


LOSSES: dict[str, Loss] = {"fused": fused, "tiles": tiles, "naive": naive, "bit by bit": bit_by_bit}
LOSSES |= {"HashNet": hashnet, "DPSH": dpsh, "DSH": dsh}


def random_batch(batch: int, code_length: int, classes: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Draw u of unit deviation, ready for a gradient, and labels."""
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(batch, code_length, generator=generator).requires_grad_()
    return u, torch.randint(classes, (batch,), generator=generator)


def gradient_of(loss: Loss, u: Tensor, labels: Tensor) -> Tensor:
    """Value and gradient with respect to u, as a step of training needs them; return the gradient."""
    u.grad = None
    loss(u, labels).backward()
    assert u.grad is not None, "every loss depends on u"
    return u.grad


def added_mebibytes(loss: str, batch: int, code_length: int) -> float:
    """MiB that value and gradient add at their peak to a process that has done the same on a few samples."""
    if not (references := Path("/proc/self/clear_refs")).exists():
        raise InputError("peak memory is read from /proc/self, which this system has not; run it on Linux.")
    torch.set_num_threads(1)
    gradient_of(LOSSES[loss], *random_batch(FEW_SAMPLES, code_length, CLASSES))
    u, labels = random_batch(batch, code_length, CLASSES)
    references.write_text("5")
    before = process_bytes("VmRSS")
    gradient_of(LOSSES[loss], u, labels)
    return (process_bytes("VmHWM") - before) / MEBIBYTE
