"""The exponentiated loss against the paper's formulas, written out pair by pair and bit by bit."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.losses import (
    ExponentiatedLoss,
    ExponentiatedLossParameters,
    exponentiated_loss,
    supervision_matrix,
)

FAITHFUL = ExponentiatedLossParameters()


def slow_loss(u, supervision, frozen_codes=None, temperature=1.0):
    """Eqns (3)-(10) as three nested loops; `frozen_codes` are the b of the partial code product."""
    batch, code_length = u.shape
    b = (u >= 0).double() * 2 - 1 if frozen_codes is None else frozen_codes
    total, pairs = 0.0, 0
    for i in range(batch):
        for j in range(batch):
            y = supervision[i, j].item()
            if y == 0:
                continue
            pairs += 1
            c = (math.exp(-y / code_length) + math.exp(y / code_length)) / 2
            c_prime = (math.exp(-y / code_length) - math.exp(y / code_length)) / 2
            for k in range(code_length):
                product = sum((b[i, m] * b[j, m]).item() for m in range(code_length)) / code_length
                partial_code_product = product - (b[i, k] * b[j, k]).item() / code_length
                sigma = (1 + math.tanh(temperature * (u[i, k] * u[j, k]).item() / 2)) / 2
                total += math.exp(-y * partial_code_product) * (c + c_prime * (2 * sigma - 1)) / code_length
    return total / max(pairs, 1)


def random_batch(seed, batch, code_length, classes, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(batch, code_length, generator=generator, dtype=torch.float64) * scale
    labels = torch.randint(classes, (batch,), generator=generator)
    return u, supervision_matrix(labels).double(), labels


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 6), st.integers(1, 4), st.sampled_from([0.01, 1.0, 30.0])
)
def test_value_equals_the_triple_loop_of_the_paper(seed, batch, code_length, classes, scale):
    u, supervision, _ = random_batch(seed, batch, code_length, classes, scale)
    assert exponentiated_loss(u, supervision, FAITHFUL).item() == pytest.approx(slow_loss(u, supervision), abs=1e-12)


@pytest.mark.parametrize("code_length", [1, 5, 12])
def test_gradients_for_w_and_z_equal_central_differences_of_the_frozen_surrogate(code_length):
    generator = torch.Generator().manual_seed(code_length)
    z = torch.rand(6, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    w = torch.randn(4, code_length, generator=generator, dtype=torch.float64, requires_grad=True)
    supervision = supervision_matrix(torch.tensor([0, 0, 1, 1, 2, 0])).double()
    exponentiated_loss(z @ w, supervision, FAITHFUL).backward()
    frozen = ((z @ w) >= 0).double() * 2 - 1
    step = 1e-5
    for tensor in (w, z):
        for index in range(tensor.numel()):
            values = []
            for sign in (1, -1):
                moved = tensor.detach().clone()
                moved.view(-1)[index] += sign * step
                u = (z @ moved if tensor is w else moved @ w).detach()
                values.append(slow_loss(u, supervision, frozen))
            assert abs((values[0] - values[1]) / (2 * step) - tensor.grad.reshape(-1)[index].item()) < 1e-7


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 9), st.integers(1, 40), st.booleans(), st.sampled_from([0.5, 1.0, 3.0]))
def test_gradient_equals_autograd_of_the_value_with_the_partial_product_detached(
    seed, batch, code_length, balance, temperature
):
    u, supervision, _ = random_batch(seed, batch, code_length, 3)
    parameters = ExponentiatedLossParameters(balance_pairs=balance, temperature=temperature)
    u.requires_grad_()
    exponentiated_loss(u, supervision, parameters).backward()
    v = u.detach().clone().requires_grad_()
    b = (v >= 0).double() * 2 - 1
    partial = (b @ b.T)[..., None] / code_length - b[:, None] * b[None] / code_length
    y = supervision[..., None]
    surrogate = 2 * torch.sigmoid(temperature * v[:, None] * v[None]) - 1
    pairwise = torch.exp(-y * partial) * (torch.cosh(y / code_length) - torch.sinh(y / code_length) * surrogate)
    similar, dissimilar = (supervision > 0).double(), (supervision < 0).double()
    if balance and similar.any() and dissimilar.any():
        weights = 0.5 * similar / similar.sum() + 0.5 * dissimilar / dissimilar.sum()
    else:
        weights = (similar + dissimilar) / (similar + dissimilar).sum()
    (weights * pairwise.mean(-1)).sum().backward()
    torch.testing.assert_close(u.grad, v.grad, rtol=1e-10, atol=1e-14)


def test_unit_scale_is_the_paper_gradient_times_k_over_sinh():
    u, supervision, _ = random_batch(3, 8, 12, 3)
    gradients = []
    for loss_scale in ("paper", "unit"):
        v = u.clone().requires_grad_()
        exponentiated_loss(v, supervision, ExponentiatedLossParameters(loss_scale=loss_scale)).backward()
        gradients.append(v.grad)
    torch.testing.assert_close(gradients[1], gradients[0] * 12 / math.sinh(1 / 12))


def test_saturated_u_gives_the_true_loss_and_no_gradient():
    u, _, labels = random_batch(5, 10, 8, 3)
    u = (u.sign() * 40).requires_grad_()
    loss, watched = ExponentiatedLoss(FAITHFUL)(u, labels)
    loss.backward()
    assert loss.item() == pytest.approx(watched["true_loss"].item(), rel=1e-12)
    assert u.grad.abs().max() < 1e-12
    assert watched["saturated_share"] == 1


def test_a_batch_of_one_class_has_only_similar_pairs_and_pulls_them_together():
    u = torch.tensor([[0.5, -0.3], [0.4, 0.2], [0.1, 0.3]], dtype=torch.float64, requires_grad=True)
    for balance in (False, True):
        u.grad = None
        loss = exponentiated_loss(
            u, supervision_matrix(torch.zeros(3)).double(), ExponentiatedLossParameters(balance_pairs=balance)
        )
        loss.backward()
        assert u.grad[0, 1] < 0, "the odd bit is pushed towards the sign of the others"
        assert torch.isfinite(loss)


def test_a_batch_of_a_single_sample_has_no_pairs_no_loss_and_no_gradient():
    u = torch.ones(1, 4, requires_grad=True)
    for balance in (False, True):
        loss = exponentiated_loss(
            u, supervision_matrix(torch.tensor([2])), ExponentiatedLossParameters(balance_pairs=balance)
        )
        loss.backward()
        assert loss.item() == 0
        assert u.grad.abs().sum() == 0


def test_exact_zeros_count_as_bit_one_and_stay_finite():
    u = torch.zeros(4, 3, dtype=torch.float64, requires_grad=True)
    supervision = supervision_matrix(torch.tensor([0, 1, 0, 1])).double()
    loss = exponentiated_loss(u, supervision, FAITHFUL)
    loss.backward()
    assert loss.item() == pytest.approx(slow_loss(u.detach(), supervision), abs=1e-12)
    assert torch.equal(u.grad, torch.zeros_like(u))


def test_true_loss_of_independent_codes_is_near_one():
    u, _, labels = random_batch(7, 400, 48, 10)
    _, watched = ExponentiatedLoss(FAITHFUL)(u, labels)
    assert watched["true_loss"].item() == pytest.approx(1.0, abs=0.02)


def test_supervision_is_one_within_a_class_minus_one_across_and_zero_for_a_sample_with_itself():
    expected = torch.tensor([[0.0, 1, -1], [1, 0, -1], [-1, -1, 0]])
    assert torch.equal(supervision_matrix(torch.tensor([4, 4, 7])), expected)


@pytest.mark.parametrize("wrong", [{"temperature": 0}, {"loss_scale": "log"}, {"margin": 1}])
def test_parameters_refuse_wrong_names_and_values(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ExponentiatedLossParameters(**wrong)
