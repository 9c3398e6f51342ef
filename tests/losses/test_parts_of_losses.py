"""What single losses have beside their formulas: CNNH's codes, GreedyHash's sign, HashNet's beta."""

import math

import numpy as np
import pytest
import torch

from deephash_pipeline.losses import CNNH, CNNHPlus, GreedyHash, HashNet, similarity_codes
from deephash_pipeline.networks import ClassificationHead

LABELS = np.arange(30) % 4


def test_the_wanted_codes_are_those_of_the_factorisation():
    expected = similarity_codes(LABELS, 12, 5)
    np.testing.assert_array_equal(CNNH(12, LABELS, 5).class_codes, expected)
    np.testing.assert_array_equal(CNNHPlus(12, LABELS, 5).class_codes, expected)


def test_bit_accuracy_is_the_share_of_bits_as_wanted():
    loss = CNNH(8, LABELS)
    u = loss.class_codes[torch.tensor([0, 1])].clone()
    u[0, :3] *= -0.1
    loss(u, torch.tensor([0, 1]))
    assert loss.metrics["bit_accuracy"].item() == pytest.approx(13 / 16)


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
