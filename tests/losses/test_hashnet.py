"""HashNet against its formula, written out pair by pair, and the course of beta."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.losses import HashNet
from tests.losses.batches import random_batch


def slow_loss(u, labels, beta, slope):
    """Every pair times the number of pairs over that of its kind, summed and divided by the number of pairs."""
    h = [[math.tanh(beta * value) for value in row] for row in u.tolist()]
    pairs = [(i, j) for i in range(len(h)) for j in range(len(h)) if i != j]
    kinds = [sum((labels[i] == labels[j]) == same for i, j in pairs) for same in (False, True)]
    total = 0.0
    for i, j in pairs:
        similar = labels[i] == labels[j]
        product = slope / u.shape[1] * sum(a * b for a, b in zip(h[i], h[j], strict=True))
        total += len(pairs) / kinds[similar] * (math.log(1 + math.exp(product)) - similar * product)
    return total / max(len(pairs), 1)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(2, 6), st.integers(1, 4), st.floats(0, 0.99))
def test_value_equals_the_double_loop_of_the_paper(seed, batch, code_length, classes, progress):
    u, labels = random_batch(seed, batch, code_length, classes)
    hashnet = HashNet()
    hashnet.set_progress(progress)
    beta = math.sqrt(1 + 0.005 * (10_000 * progress))
    assert hashnet(u, labels).item() == pytest.approx(slow_loss(u, labels.tolist(), beta, 10), abs=1e-12)


def test_beta_rises_from_one_as_the_authors_let_it():
    hashnet = HashNet()
    u, labels = torch.tensor([[0.3], [-0.2]]), torch.tensor([0, 1])
    betas = []
    for progress in (0, 0.02, 0.5, 1):
        hashnet.set_progress(progress)
        hashnet(u, labels)
        betas.append(hashnet.metrics["beta"].item())
    assert betas == pytest.approx([1, math.sqrt(2), math.sqrt(26), math.sqrt(51)])


def test_the_steepest_tanh_that_is_searched_has_a_gradient():
    hashnet = HashNet(growth=1581.0, power=15.8)
    hashnet.set_progress(0.9)
    u = torch.tensor([[0.3, 1e-8], [-0.2, 0.0]], requires_grad=True)
    hashnet(u, torch.tensor([0, 1])).backward()
    assert torch.isfinite(u.grad).all()
