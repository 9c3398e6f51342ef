"""DNNH against its formula, triplet by triplet, and the choice of negatives."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.losses import DNNH
from deephash_pipeline.losses.dnnh import soft_bits
from tests.losses.batches import random_batch


def slow_soft_bit(value, epsilon):
    sigma = 1 / (1 + math.exp(-value))
    if sigma < 0.5 - epsilon:
        return 0.0
    return 1.0 if sigma > 0.5 + epsilon else sigma


def slow_distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def slow_loss(u, labels, epsilon, margin):
    g = [[slow_soft_bit(value, epsilon) for value in row] for row in u.tolist()]
    costs = []
    for anchor, label in enumerate(labels):
        to_negatives = [slow_distance(g[anchor], g[j]) for j in range(len(g)) if labels[j] != label]
        for positive in range(len(g)):
            if positive == anchor or labels[positive] != label or not to_negatives:
                continue
            distance = slow_distance(g[anchor], g[positive])
            farther = [negative for negative in to_negatives if negative > distance]
            costs.append(max(0.0, distance - (min(farther) if farther else max(to_negatives)) + margin))
    return sum(costs) / max(len(costs), 1)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(1, 9),
    st.integers(2, 6),
    st.integers(1, 4),
    st.sampled_from([0.1, 0.4, 0.5]),
    st.booleans(),
)
def test_value_equals_the_loop_over_triplets(seed, batch, code_length, classes, epsilon, settled):
    """With all bits settled or none: a mixture has distances that are equal but for rounding."""
    u, labels = random_batch(seed, batch, code_length, classes, scale=2)
    if settled:
        u = u.sign() * 40
    elif epsilon < 0.5:
        u = u.tanh() * math.log((0.5 + epsilon) / (0.5 - epsilon))
    loss = DNNH(epsilon, margin=1.5)(u, labels)
    assert loss.item() == pytest.approx(slow_loss(u, labels.tolist(), epsilon, 1.5), abs=1e-12)


def test_a_bit_outside_the_interval_is_settled_and_has_no_gradient():
    u = torch.tensor([-3.0, -0.5, 0.0, 0.5, 3.0], requires_grad=True)
    soft = soft_bits(u, 0.2)
    soft.sum().backward()
    assert soft.tolist() == pytest.approx([0, 1 / (1 + math.exp(0.5)), 0.5, 1 / (1 + math.exp(-0.5)), 1])
    assert (u.grad != 0).tolist() == [False, True, True, True, False]


def test_the_share_of_triplets_that_cost_something_is_watched():
    u, loss = torch.tensor([[-30.0, 30.0], [-30.0, 30.0], [30.0, -30.0]]), DNNH()
    loss(u, torch.tensor([0, 0, 1]))
    assert (loss.metrics["active_share"], loss.metrics["quantisation_error"]) == (0, 0)
    loss(torch.ones(4, 3), torch.tensor([0, 0, 1, 1]))
    assert loss.metrics["active_share"] == 1
