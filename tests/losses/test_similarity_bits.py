"""Bits that keep similarities, beside bits that minimise a loss."""

import math

import pytest
import torch

from deephash_pipeline.losses import DPSH, ExponentiatedLoss, HashNet, SimilarityBits, SimilarityParameters

GENERATOR = torch.Generator().manual_seed(0)
FEATURES = torch.randn(9, 5, generator=GENERATOR, dtype=torch.float64)
BATCH = torch.tensor([7, 0, 3, 8])
U = torch.randn(4, 6, generator=GENERATOR, dtype=torch.float64)
LABELS = torch.tensor([0, 1, 0, 2])


def similarity_bits(loss=None, features=FEATURES, weight=2.5):
    made = SimilarityBits(loss or ExponentiatedLoss(), features, bits=2, weight=weight)
    made.set_batch(BATCH)
    return made


def written_out(u, features):
    """Mean over pairs of (h_i . h_j / K - s_ij)^2 as it is written, pair by pair."""
    centred = features - features.mean(0)
    errors = []
    for i in range(4):
        for j in set(range(4)) - {i}:
            x, y = centred[BATCH[i]], centred[BATCH[j]]
            angle = math.acos(float(x @ y / (x.norm() * y.norm())))
            product = float(torch.tanh(u[i, :2] / 2) @ torch.tanh(u[j, :2] / 2)) / 2
            errors.append((product - (1 - 2 * angle / math.pi)) ** 2)
    return sum(errors) / len(errors)


def test_it_is_the_loss_of_the_last_bits_and_the_squared_errors_of_the_first():
    made = similarity_bits()
    expected = ExponentiatedLoss()(U[:, 2:], LABELS) + 2.5 * 2 * written_out(U, FEATURES)
    torch.testing.assert_close(made(U, LABELS), expected, rtol=1e-6, atol=0)
    assert made.metrics["similarity_error"].item() == pytest.approx(written_out(U, FEATURES), rel=1e-6)
    assert "true_loss" in made.metrics


def test_the_first_bits_know_nothing_of_labels_and_the_last_nothing_of_similarities():
    def gradient(labels, features):
        u = U.clone().requires_grad_()
        similarity_bits(DPSH(), features)(u, labels).backward()
        return u.grad

    before = gradient(LABELS, FEATURES)
    other_labels, other_features = gradient(LABELS.roll(1), FEATURES), gradient(LABELS, FEATURES.roll(1, 0))
    assert torch.equal(before[:, :2], other_labels[:, :2])
    assert not torch.equal(before[:, 2:], other_labels[:, 2:])
    assert torch.equal(before[:, 2:], other_features[:, 2:])
    assert not torch.equal(before[:, :2], other_features[:, :2])


@pytest.mark.parametrize("weight", [1.0, 1e4])
def test_two_equal_images_have_a_finite_gradient(weight):
    u, features = U.clone().requires_grad_(), torch.ones_like(FEATURES).index_fill(0, torch.tensor([1]), 2.0)
    similarity_bits(features=features, weight=weight)(u, LABELS).backward()
    assert u.grad.isfinite().all()


def test_it_tells_a_loss_that_follows_progress():
    loss = HashNet()
    similarity_bits(loss).set_progress(0.5)
    assert loss.beta == pytest.approx(math.sqrt(26))
    similarity_bits(DPSH()).set_progress(0.5)


@pytest.mark.parametrize(("share", "bits"), [(0, 0), (0.01, 1), (0.5, 24), (0.999, 47)])
def test_a_share_of_the_bits_leaves_some_to_the_loss(share, bits):
    assert SimilarityParameters(share=share).bits_of(48) == bits


def test_half_precision_is_computed_in_float32():
    u, features = (U / 8).half(), FEATURES.float()
    with torch.autocast("cpu", dtype=torch.float16):
        found = similarity_bits(features=features)(u, LABELS)
    assert torch.equal(found, similarity_bits(features=features)(u.float(), LABELS))
