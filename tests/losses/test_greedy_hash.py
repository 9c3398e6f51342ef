"""GreedyHash against its formula, and its sign, through which gradients pass."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.losses import GreedyHash
from deephash_pipeline.networks import ClassificationHead


def slow_loss(u, logits, labels, weight):
    entropy = 0.0
    for row, label in zip(logits.tolist(), labels, strict=True):
        entropy -= row[label] - math.log(sum(math.exp(value) for value in row))
    pulls = [abs(abs(value) - 1) ** 3 for row in u.tolist() for value in row]
    return entropy / len(labels) + weight * sum(pulls) / len(pulls)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(2, 6), st.integers(1, 4), st.floats(0, 2))
def test_value_equals_cross_entropy_and_the_mean_cubic_distance_of_u_from_one(seed, batch, bits, classes, weight):
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(batch, bits, generator=generator, dtype=torch.float64)
    logits = torch.randn(batch, classes, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, (batch,), generator=generator)
    loss = GreedyHash(quantisation_weight=weight)((u, logits), labels)
    assert loss.item() == pytest.approx(slow_loss(u, logits, labels.tolist(), weight), abs=1e-12)


def test_the_gradient_for_u_is_that_for_the_code_as_if_u_were_the_code():
    generator = torch.Generator().manual_seed(3)
    classifier = ClassificationHead("code", 5, 3).double()
    labels = torch.tensor([0, 2, 1, 1])
    loss = GreedyHash(quantisation_weight=0)
    u = (torch.randn(4, 5, generator=generator, dtype=torch.float64) * 7).requires_grad_()
    loss((u, classifier(torch.empty(0), u)), labels).backward()
    code = torch.where(u >= 0, 1.0, -1.0).double().requires_grad_()
    torch.nn.functional.cross_entropy(classifier.softmax(code), labels).backward()
    torch.testing.assert_close(u.grad, code.grad, rtol=1e-12, atol=0)
    assert u.grad.abs().min() > 0


def test_the_layer_on_the_code_sees_nothing_of_u_but_its_signs():
    classifier = ClassificationHead("code", 3, 4)
    u = torch.tensor([[0.1, -5.0, 0.0]])
    assert torch.equal(classifier(torch.empty(0), u), classifier.softmax(torch.tensor([[1.0, -1.0, 1.0]])))


def test_accuracy_is_that_of_the_softmax_layer():
    logits = torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, 1.0]])
    loss = GreedyHash()
    loss((torch.ones(3, 2), logits), torch.tensor([0, 1, 1]))
    assert loss.metrics["accuracy"].item() == pytest.approx(2 / 3)
    assert loss.metrics["quantisation_error"] == 0
