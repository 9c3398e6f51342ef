"""DPSH against its formula, written out pair by pair."""

import pytest
import torch

from deephash_pipeline.losses import DPSH


def test_codes_are_watched_by_their_distance_from_u():
    loss = DPSH()
    loss(torch.tensor([[0.5, -2.0], [1.0, 0.0]]), torch.tensor([0, 1]))
    assert loss.metrics["quantisation_error"].item() == pytest.approx((0.25 + 1 + 0 + 1) / 4)
