"""The losses that ours is timed against: those of the same loss agree with it, the others with their formulas."""

import pytest
import torch

from benchmarks.rival_losses import LOSSES, bit_by_bit, gradient_of, naive, random_batch, tiles
from deephash_pipeline.losses import ExponentiatedLoss


@pytest.mark.parametrize("loss", [tiles, naive, bit_by_bit])
def test_other_ways_to_compute_the_loss_agree_with_it(loss):
    u, labels = random_batch(30, 12, 3)
    expected = ExponentiatedLoss().loss_and_gradient(u, labels)
    assert loss(u, labels).item() == pytest.approx(expected.value.item(), rel=1e-5)
    torch.testing.assert_close(gradient_of(loss, u, labels), expected.gradient, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_has_a_gradient_for_batches_of_one_class_too(name):
    u, labels = random_batch(5, 3, 1)
    gradient = gradient_of(LOSSES[name], u, labels)
    assert gradient.isfinite().all() and gradient.abs().max() > 0
