"""The reference of the exponentiated loss: each equation of the paper, and the gradients that it derives from them."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.losses import ExponentiatedLoss, supervision_matrix
from deephash_pipeline.losses.exponentiated import reference
from deephash_pipeline.losses.exponentiated.formula import Departures
from tests.losses.batches import random_batch

SIMILAR, DISSIMILAR = torch.ones(1, 1).double(), -torch.ones(1, 1).double()


def test_weights_of_pairs_add_up_to_one_and_balanced_ones_to_a_half_for_either_kind():
    y = supervision_matrix(torch.tensor([0, 0, 0, 1, 2]))
    assert reference.pair_weights(y).sum().item() == pytest.approx(1)
    balanced = reference.pair_weights(y, balance_pairs=True)
    assert [balanced[y == kind].sum().item() for kind in (1, -1, 0)] == pytest.approx([0.5, 0.5, 0])


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(2, 9),
    st.integers(1, 40),
    st.sampled_from(["paper", "unit"]),
    st.sampled_from([0.5, 1.0, 3.0]),
    st.booleans(),
)
def test_the_papers_gradients_are_those_of_autograd_with_the_partial_code_product_frozen(
    seed, batch, code_length, loss_scale, temperature, balance
):
    generator = torch.Generator().manual_seed(seed)
    z = torch.rand(batch, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    w = torch.randn(4, code_length, generator=generator, dtype=torch.float64, requires_grad=True)
    y = supervision_matrix(torch.randint(3, (batch,), generator=generator)).double()
    weights = reference.pair_weights(y, balance)
    losses = reference.approximate_atomic_loss(z @ w, y, loss_scale, temperature)
    reference.objective(reference.mean_over_bits(losses), weights).backward()
    with torch.no_grad():
        slopes = weights[:, :, None] * reference.slope_of_products(z @ w, y, loss_scale, temperature)
        torch.testing.assert_close(reference.gradient_for_w(slopes, z, w), w.grad, rtol=1e-10, atol=1e-13)
        torch.testing.assert_close(reference.gradient_for_z(slopes, z, w), z.grad, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("loss_scale", ["paper", "unit"])
@pytest.mark.parametrize("balance", [False, True])
def test_the_loss_in_plain_pytorch_is_the_reference_in_tiles(loss_scale, balance):
    loss = ExponentiatedLoss(loss_scale, temperature=0.7, balance_pairs=balance)
    for batch, code_length in ((1, 3), (40, 12), (90, 48), (400, 2)):
        u, labels = random_batch(batch, batch, code_length)
        found = loss.loss_and_gradient(u, supervision_matrix(labels).double())
        expected = reference.loss_and_gradient(u, labels, Departures(loss_scale, 0.7, balance))
        for part, of_reference in zip(found, expected, strict=True):
            torch.testing.assert_close(part, of_reference, rtol=1e-10, atol=1e-13)
