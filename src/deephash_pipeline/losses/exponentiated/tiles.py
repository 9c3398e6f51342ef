"""The exponentiated loss in plain PyTorch, for any device, floating type and supervision: tiles of pairs and bits.

It keeps a few B x B matrices, one of exponentials serves all bits; the B x B x K tensor is never built.
"""

from itertools import product

import torch
from torch import Tensor

from deephash_pipeline.losses.exponentiated.formula import Departures, LossAndGradient, PairSums
from deephash_pipeline.losses.hashing_loss import signs

TILE_ELEMENTS = 131_072
"""Elements of a block of sigma(u_ik u_jk); 512 KiB in float32 stay in a core's second-level cache."""


def pair_weights(supervision: Tensor, balance_pairs: bool) -> Tensor:
    """Weights of the ordered pairs (batch, batch): they sum to 1 over the pairs with Y != 0 (0 if there are none)."""
    pairs = supervision.ne(0).to(supervision.dtype)
    if not balance_pairs:
        return pairs / pairs.sum().clamp_min(1)
    similar, dissimilar = supervision.gt(0).to(pairs.dtype), supervision.lt(0).to(pairs.dtype)
    weights = similar / similar.sum().clamp_min(1) + dissimilar / dissimilar.sum().clamp_min(1)
    return weights / weights.sum().clamp_min(torch.finfo(weights.dtype).tiny)


def loss_and_gradient(u: Tensor, supervision: Tensor, departures: Departures) -> LossAndGradient:
    """Compute the loss of a batch tile by tile.

    Args:
        u: floating, shape (batch, code_length).
        supervision: Y of Eqn (1), values in {-1, 0, 1}, symmetric, shape (batch, batch). Pairs with 0 do not count.
        departures: departures from the paper.
    """
    batch, code_length = u.shape
    b = signs(u)
    supervision = supervision.to(u.dtype)
    c = torch.cosh(torch.tensor(1 / code_length, dtype=u.dtype, device=u.device))
    s = torch.sinh(torch.tensor(1 / code_length, dtype=u.dtype, device=u.device))
    code_product = b @ b.T / code_length
    weighted = pair_weights(supervision, departures.balance_pairs) * torch.exp(-supervision * code_product)
    # The pair factor is weighted * (Y C + Y^2 S b_ik b_jk): without and with the bit product.
    without_bit, with_bit = weighted * supervision * c, weighted * supervision.square() * s
    surrogate = weighted.new_zeros(())
    u_by_bit, b_by_bit, gradient_by_bit = u.T.contiguous(), b.T.contiguous(), torch.empty_like(u.T)
    # All pairs for a few bits, or, in a large batch, some rows of pairs for one bit.
    bits_in_tile = max(1, TILE_ELEMENTS // max(batch * batch, 1))
    rows_in_tile = batch if bits_in_tile > 1 else max(1, TILE_ELEMENTS // batch)
    for first_bit, first_row in product(range(0, code_length, bits_in_tile), range(0, batch, rows_in_tile)):
        bits, rows = slice(first_bit, first_bit + bits_in_tile), slice(first_row, first_row + rows_in_tile)
        u_k, b_k = u_by_bit[bits], b_by_bit[bits]
        sigma = torch.mul(departures.temperature * u_k[:, rows, None], u_k[:, None, :]).sigmoid_()
        pair_factor = torch.addcmul(without_bit[rows], with_bit[rows], b_k[:, rows, None] * b_k[:, None, :])
        slope = torch.ops.aten.sigmoid_backward(pair_factor, sigma)  # pair_factor * sigma * (1 - sigma)
        surrogate += 2 * torch.dot(pair_factor.flatten(), sigma.sub_(0.5).flatten())
        gradient_by_bit[bits, rows] = torch.matmul(slope, u_k[:, :, None])[:, :, 0]
    gradient = gradient_by_bit.T.contiguous() * departures.gradient_scale(code_length)
    sums = PairSums(weighted.sum(), (weighted * supervision * code_product).sum(), surrogate)
    return LossAndGradient(sums.loss(code_length, departures), gradient, sums.exponential)
