"""The exponentiated loss as the paper writes it, for all pairs and bits at once: what every way must agree with."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from deephash_pipeline.losses import ExponentiatedLossParameters, LossAndGradient

Reference = Callable[[Tensor, Tensor, ExponentiatedLossParameters], LossAndGradient]


def naive_loss_and_gradient(u: Tensor, labels: Tensor, parameters: ExponentiatedLossParameters) -> LossAndGradient:
    """Eqns (3)-(10) in float64 over batch x batch x bits; autograd differentiates, the partial product detached."""
    u = u.detach().double().requires_grad_()
    batch, code_length = u.shape
    b = torch.where(u >= 0, 1.0, -1.0).double()
    y = torch.where(labels[:, None] == labels[None, :], 1.0, -1.0).double()
    pairs = ~torch.eye(batch, dtype=torch.bool)
    similar, dissimilar = (pairs & (y > 0)).double(), (pairs & (y < 0)).double()
    if parameters.balance_pairs and similar.any() and dissimilar.any():
        weights = 0.5 * similar / similar.sum() + 0.5 * dissimilar / dissimilar.sum()
    else:
        weights = pairs.double() / pairs.sum().clamp_min(1)
    bit_products = b[:, None] * b[None]
    code_product = bit_products.mean(-1)
    partial_code_product = code_product[..., None] - bit_products / code_length
    y_of_bit = y[..., None]
    c, c_prime = torch.cosh(y_of_bit / code_length), -torch.sinh(y_of_bit / code_length)
    if parameters.loss_scale == "unit":
        c, c_prime = torch.zeros_like(c), -y_of_bit * code_length
    surrogate = torch.tanh(parameters.temperature * u[:, None] * u[None] / 2)
    value = (weights * (torch.exp(-y_of_bit * partial_code_product) * (c + c_prime * surrogate)).mean(-1)).sum()
    value.backward()
    assert u.grad is not None
    return LossAndGradient(value.detach(), u.grad, (weights * torch.exp(-y * code_product)).sum())


@pytest.fixture(scope="session")
def reference() -> Reference:
    return naive_loss_and_gradient
