"""The exponentiated loss against the paper's formulas, written out pair by pair and bit by bit."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.losses import ExponentiatedLoss, supervision_matrix
from tests.losses.batches import random_batch

FAITHFUL = ExponentiatedLoss()


def slow_loss(u, supervision):
    """Eqns (3)-(10) as three nested loops."""
    batch, code_length = u.shape
    b = (u >= 0).double() * 2 - 1
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
                sigma = (1 + math.tanh((u[i, k] * u[j, k]).item() / 2)) / 2
                total += math.exp(-y * partial_code_product) * (c + c_prime * (2 * sigma - 1)) / code_length
    return total / max(pairs, 1)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 6), st.integers(1, 4), st.sampled_from([0.01, 1.0, 30.0])
)
def test_value_equals_the_triple_loop_of_the_paper(seed, batch, code_length, classes, scale):
    u, labels = random_batch(seed, batch, code_length, classes, scale)
    supervision = supervision_matrix(labels).double()
    assert FAITHFUL(u, supervision).item() == pytest.approx(slow_loss(u, supervision), abs=1e-12)
    assert FAITHFUL.metrics["u_standard_deviation"].isfinite()


def test_unit_scale_is_the_paper_gradient_times_k_over_sinh():
    u, labels = random_batch(3, 8, 12)
    supervision = supervision_matrix(labels).double()
    gradients = []
    for loss_scale in ("paper", "unit"):
        v = u.clone().requires_grad_()
        ExponentiatedLoss(loss_scale)(v, supervision).backward()
        gradients.append(v.grad)
    torch.testing.assert_close(gradients[1], gradients[0] * 12 / math.sinh(1 / 12))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 9), st.integers(1, 40), st.sampled_from([0.1, 6.0, 200.0]))
def test_a_temperature_is_a_longer_w(seed, batch, code_length, temperature):
    u, labels = random_batch(seed, batch, code_length, 3)
    root = math.sqrt(temperature)
    hotter, longer = ExponentiatedLoss(temperature=temperature), ExponentiatedLoss()
    found, expected = hotter.loss_and_gradient(u, labels), longer.loss_and_gradient(root * u, labels)
    torch.testing.assert_close(found.value, expected.value, rtol=1e-10, atol=1e-13)
    torch.testing.assert_close(found.gradient, root * expected.gradient, rtol=1e-10, atol=1e-13)
    hotter(u, labels), longer(root * u, labels)
    assert hotter.metrics["saturated_share"] == longer.metrics["saturated_share"]


def test_saturated_products_are_counted():
    u, labels = random_batch(5, 10, 8, 3)
    for scale, share in ((40, 1), (0.01, 0)):
        FAITHFUL(u.sign() * scale, labels)
        assert FAITHFUL.metrics["saturated_share"] == share


def test_a_second_derivative_is_refused():
    u = torch.ones(3, 2, requires_grad=True)
    with pytest.raises(InputError, match="is differentiated once: leave out `create_graph`"):
        torch.autograd.grad(ExponentiatedLoss()(u, torch.tensor([0, 0, 1])), u, create_graph=True)
