"""The losses that ours is timed against: those of the same loss agree with it, the others with their formulas."""

import math

import pytest
import torch

from benchmarks.rival_losses import LOSSES, bit_by_bit, dpsh, dsh, gradient_of, hashnet, naive, random_batch, tiles
from deephash_pipeline.losses import ExponentiatedLoss


@pytest.mark.parametrize("loss", [tiles, naive, bit_by_bit])
def test_other_ways_to_compute_the_loss_agree_with_it(loss):
    u, labels = random_batch(30, 12, 3)
    expected = ExponentiatedLoss().loss_and_gradient(u, labels)
    assert loss(u, labels).item() == pytest.approx(expected.value.item(), rel=1e-5)
    torch.testing.assert_close(gradient_of(loss, u, labels), expected.gradient, rtol=1e-4, atol=1e-9)


@pytest.fixture
def small_batch():
    u, labels = random_batch(6, 4, 2)
    return u.detach().double(), labels.tolist()


def test_dpsh_is_the_mean_of_its_terms_over_ordered_pairs(small_batch):
    u, labels = small_batch
    terms = []
    for i, u_i in enumerate(u):
        for j, u_j in enumerate(u):
            theta = 0.5 * torch.dot(u_i, u_j).item()
            terms.append(math.log(1 + math.exp(theta)) - (labels[i] == labels[j]) * theta)
    quantisation = ((u - u.sign()) ** 2).mean().item()
    assert dpsh(u, torch.tensor(labels)).item() == pytest.approx(sum(terms) / len(terms) + 0.1 * quantisation)


def test_dsh_is_the_mean_of_its_terms_over_ordered_pairs(small_batch):
    u, labels = small_batch
    terms = []
    for i, u_i in enumerate(u):
        for j, u_j in enumerate(u):
            distance = ((u_i - u_j) ** 2).sum().item()
            terms.append(distance / 2 if labels[i] == labels[j] else max(8 - distance, 0) / 2)
    regular = (u.abs() - 1).abs().mean().item()
    assert dsh(u, torch.tensor(labels)).item() == pytest.approx(sum(terms) / len(terms) + 0.01 * regular)


def test_hashnet_weighs_similar_and_dissimilar_pairs_by_their_rarity(small_batch):
    u, labels = small_batch
    similar = sum(a == b for a in labels for b in labels)
    total, pairs = 0.0, len(labels) ** 2
    for i, u_i in enumerate(u):
        for j, u_j in enumerate(u):
            product = 10 / 4 * torch.dot(u_i.tanh(), u_j.tanh()).item()
            equal = labels[i] == labels[j]
            weight = pairs / (similar if equal else pairs - similar)
            total += weight * (math.log(1 + math.exp(product)) - equal * product)
    assert hashnet(u, torch.tensor(labels)).item() == pytest.approx(total / pairs)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_has_a_gradient_for_batches_of_one_class_too(name):
    u, labels = random_batch(5, 3, 1)
    gradient = gradient_of(LOSSES[name], u, labels)
    assert gradient.isfinite().all() and gradient.abs().max() > 0
