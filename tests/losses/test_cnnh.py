"""CNNH and CNNH+ against their formulas."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.losses import CNNH, CNNHPlus, similarity_codes

LABELS = np.arange(30) % 4


def slow_regression(u, wanted):
    squares = [
        (math.tanh(value) - bit) ** 2
        for value, bit in zip(u.flatten().tolist(), wanted.flatten().tolist(), strict=True)
    ]
    return sum(squares) / len(squares)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(2, 9), st.floats(0, 2))
def test_value_equals_the_mean_square_and_for_the_plus_the_cross_entropy(seed, batch, code_length, weight):
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(batch, code_length, generator=generator, dtype=torch.float64)
    logits = torch.randn(batch, 4, generator=generator, dtype=torch.float64)
    labels = torch.randint(4, (batch,), generator=generator)
    cnnh = CNNH(code_length, LABELS, seed)
    plus = CNNHPlus(code_length, LABELS, seed, label_weight=weight)
    regression = slow_regression(u, cnnh.class_codes[labels])
    entropy = sum(
        math.log(sum(map(math.exp, row))) - row[label]
        for row, label in zip(logits.tolist(), labels.tolist(), strict=True)
    )
    assert cnnh(u, labels).item() == pytest.approx(regression, abs=1e-12)
    assert plus((u, logits), labels).item() == pytest.approx(regression + weight * entropy / batch, abs=1e-12)


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
