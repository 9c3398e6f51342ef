"""DPSH against its formula, written out pair by pair."""

import pytest
import torch

from deephash_pipeline.losses import DPSH


def test_pairs_that_are_surely_right_cost_nothing_and_pairs_that_are_surely_wrong_cost_their_log_odds():
    u = torch.tensor([[1.0, 1.0], [1.0, 1.0]], dtype=torch.float64) * 30
    loss = DPSH(quantisation_weight=0)
    assert loss(u, torch.tensor([0, 0])).item() == pytest.approx(0, abs=1e-12)
    assert loss(u, torch.tensor([0, 1])).item() == pytest.approx(900)


def test_codes_are_watched_by_their_distance_from_u():
    loss = DPSH()
    loss(torch.tensor([[0.5, -2.0], [1.0, 0.0]]), torch.tensor([0, 1]))
    assert loss.metrics["quantisation_error"].item() == pytest.approx((0.25 + 1 + 0 + 1) / 4)
