"""DPSH against its formula, written out pair by pair."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.losses import DPSH


def slow_loss(u, labels, weight):
    likelihood, pairs = 0.0, 0
    for i, u_i in enumerate(u.tolist()):
        for j, u_j in enumerate(u.tolist()):
            if i != j:
                theta = sum(a * b for a, b in zip(u_i, u_j, strict=True)) / 2
                similar = 1.0 if labels[i] == labels[j] else 0.0
                likelihood -= similar * theta - math.log(1 + math.exp(theta))
                pairs += 1
    distances = [(value - (1 if value >= 0 else -1)) ** 2 for row in u.tolist() for value in row]
    return likelihood / max(pairs, 1) + weight * sum(distances) / len(distances)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(2, 6), st.integers(1, 4), st.floats(0, 2))
def test_value_equals_the_double_loop_of_the_paper(seed, batch, code_length, classes, weight):
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(batch, code_length, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, (batch,), generator=generator)
    loss = DPSH(quantisation_weight=weight)(u, labels)
    assert loss.item() == pytest.approx(slow_loss(u, labels.tolist(), weight), abs=1e-12)


def test_pairs_that_are_surely_right_cost_nothing_and_pairs_that_are_surely_wrong_cost_their_log_odds():
    u = torch.tensor([[1.0, 1.0], [1.0, 1.0]], dtype=torch.float64) * 30
    loss = DPSH(quantisation_weight=0)
    assert loss(u, torch.tensor([0, 0])).item() == pytest.approx(0, abs=1e-12)
    assert loss(u, torch.tensor([0, 1])).item() == pytest.approx(900)


def test_the_gradient_is_that_of_finite_differences():
    u = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    labels = torch.tensor([0, 1, 0, 2, 1])
    assert torch.autograd.gradcheck(lambda u: DPSH()(u, labels), u)


def test_codes_are_watched_by_their_distance_from_u():
    loss = DPSH()
    loss(torch.tensor([[0.5, -2.0], [1.0, 0.0]]), torch.tensor([0, 1]))
    assert loss.metrics["quantisation_error"].item() == pytest.approx((0.25 + 1 + 0 + 1) / 4)
