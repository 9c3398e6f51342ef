r"""The paper's loss: exponentiated code product and its bilinear smooth approximation (section 2.1, Eqns 3-12).

For codes b = sign(u) of length K the loss of a pair is exp(-Y_ij b_i o b_j) (Eqn 6). Leaving bit k out splits it into

    exp(-Y (b_i o b_j - b_i(k) b_j(k) / K))  *  (c + c' b_i(k) b_j(k))        c = cosh(Y/K), c' = -sinh(Y/K)

(Eqns 4 and 7). The first factor, the frozen partial code product, re-weights the pair; in the second the product of
signs becomes 2 sigma(u_ik u_jk) - 1 (Eqn 8). The mean over k is the surrogate (Eqns 9 and 10).

As Y and the bit product are +-1, the first factor is exp(-Y b_i o b_j) (C + Y S b_i(k) b_j(k)) with C = cosh(1/K) and
S = sinh(1/K): one B x B matrix of exponentials serves all bits, and the gradient with respect to u needs only tiles.
"""

from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

TILE_ELEMENTS = 131_072
"""Elements of a block of sigma(u_ik u_jk); 512 KiB in float32 stay in a core's second-level cache."""

SATURATION = 10.0
"""|u_i u_j| above which 2 sigma - 1 is flat: its derivative is below 1e-4 of the largest."""


class ExponentiatedLossParameters(BaseModel):
    """The defaults are the paper's loss to the letter; each field is a named departure from it.

    Attributes:
        loss_scale: ``paper`` keeps c and c'; ``unit`` drops the constant c and multiplies the rest by K / sinh(1/K), so
            that the gradient for one bit does not shrink with 1/K^2. The path of gradient descent is the same at a
            step size that many times smaller: it is one of the "scaling factors" which the paper discards.
        temperature: beta in sigma(beta u_i u_j).
        balance_pairs: give similar and dissimilar pairs half of the weight each, whatever their numbers.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    loss_scale: Literal["paper", "unit"] = "paper"
    temperature: float = Field(default=1.0, gt=0)
    balance_pairs: bool = False


def supervision_matrix(labels: Tensor) -> Tensor:
    """Y of Eqn (1) from class labels (batch,): 1 for the same class, -1 for different ones, 0 on the diagonal.

    A sample paired with itself would only push |u| up (Y = 1, u_i^2 >= 0), so the diagonal counts as "otherwise".
    """
    supervision = (labels[:, None] == labels[None, :]).float() * 2 - 1
    return supervision.fill_diagonal_(0)


def signs(u: Tensor) -> Tensor:
    """Return b = sign(u) in {-1, 1}; zero counts as 1, the convention of the encoders."""
    return (u >= 0).to(u.dtype) * 2 - 1


def pair_weights(supervision: Tensor, balance_pairs: bool) -> Tensor:
    """Weights of the ordered pairs (batch, batch): they sum to 1 over the pairs with Y != 0 (0 if there are none)."""
    pairs = supervision.ne(0).to(supervision.dtype)
    if not balance_pairs:
        return pairs / pairs.sum().clamp_min(1)
    similar, dissimilar = supervision.gt(0).to(pairs.dtype), supervision.lt(0).to(pairs.dtype)
    weights = similar / similar.sum().clamp_min(1) + dissimilar / dissimilar.sum().clamp_min(1)
    return weights / weights.sum().clamp_min(torch.finfo(weights.dtype).tiny)


class _ExponentiatedLoss(torch.autograd.Function):
    """Value of the surrogate, its gradient with respect to u and, as a by-product, the true loss (Eqn 6)."""

    @staticmethod
    def forward(
        ctx: Any, u: Tensor, supervision: Tensor, parameters: ExponentiatedLossParameters
    ) -> tuple[Tensor, Tensor]:
        batch, code_length = u.shape
        b = signs(u)
        supervision = supervision.to(u.dtype)
        c = torch.cosh(torch.tensor(1 / code_length, dtype=u.dtype, device=u.device))
        s = torch.sinh(torch.tensor(1 / code_length, dtype=u.dtype, device=u.device))
        code_product = b @ b.T / code_length
        weighted = pair_weights(supervision, parameters.balance_pairs) * torch.exp(-supervision * code_product)
        # The re-weighting factor times Y is weighted * (Y C + Y^2 S b_ik b_jk): without and with the bit product.
        without_bit, with_bit = weighted * supervision * c, weighted * supervision.square() * s
        c_prime = -s if parameters.loss_scale == "paper" else -torch.ones_like(s) * code_length

        # Over all bits the pair factors add up to K * without_bit + with_bit * b b^T, so the -1 of 2 sigma - 1 is free.
        value = -(without_bit + with_bit * code_product).sum() * code_length
        gradient = torch.empty_like(u)
        bits_in_tile = max(1, TILE_ELEMENTS // max(batch * batch, 1))
        for start in range(0, code_length, bits_in_tile):
            u_k = u[:, start : start + bits_in_tile].T
            b_k = b[:, start : start + bits_in_tile].T
            sigma = torch.mul(parameters.temperature * u_k[:, :, None], u_k[:, None, :]).sigmoid_()
            pair_factor = torch.addcmul(without_bit, with_bit, b_k[:, :, None] * b_k[:, None, :])
            value += 2 * torch.dot(pair_factor.flatten(), sigma.flatten())
            slope = torch.ops.aten.sigmoid_backward(pair_factor, sigma)  # pair_factor * sigma * (1 - sigma)
            gradient[:, start : start + bits_in_tile] = torch.matmul(slope, u_k[:, :, None])[:, :, 0].T
        value *= c_prime / code_length
        # Each pair stands twice in the sum, and 2 sigma - 1 has slope 2 sigma (1 - sigma).
        gradient *= 4 * parameters.temperature * c_prime / code_length
        if parameters.loss_scale == "paper":
            # The constant c of Eqn (7): sum over k of weighted * (C + Y S b_ik b_jk) * C / K.
            value += c * (c * weighted + s * weighted * supervision * code_product).sum()
        true_loss = weighted.sum()
        ctx.save_for_backward(gradient)
        ctx.mark_non_differentiable(true_loss)
        return value, true_loss

    @staticmethod
    def backward(ctx: Any, *output_gradients: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * output_gradients[0], None, None


def exponentiated_loss(u: Tensor, supervision: Tensor, parameters: ExponentiatedLossParameters) -> Tensor:
    """Mean of the surrogate loss (Eqn 10) over the pairs of a batch, with its analytic gradient.

    Args:
        u: w_k' z_i, floating, shape (batch, code_length).
        supervision: Y of Eqn (1), values in {-1, 0, 1}, symmetric, shape (batch, batch). Pairs with 0 do not count.
        parameters: departures from the paper.

    Returns:
        Scalar of u's dtype. The gradient treats the partial code product as a constant, as the paper does; it is
        that of the sum over ordered pairs, so it includes both slots that a sample has in its pairs.
    """
    loss: Tensor = _ExponentiatedLoss.apply(u, supervision, parameters)[0]
    return loss


class ExponentiatedLoss(nn.Module):
    """The loss as an objective of the training loop: (u, labels) -> (loss, figures to watch)."""

    def __init__(self, parameters: ExponentiatedLossParameters) -> None:
        super().__init__()
        self.parameters_ = parameters

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
        supervision = supervision_matrix(labels).to(u.dtype)
        loss, true_loss = _ExponentiatedLoss.apply(u, supervision, self.parameters_)
        with torch.no_grad():
            saturated = (u * u.roll(1, dims=0)).abs().gt(SATURATION).to(u.dtype).mean()
            watched = {"true_loss": true_loss, "u_standard_deviation": u.std(), "saturated_share": saturated}
        return loss, watched
