"""CSQ against its formula, and the distances of its centres."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.losses import CSQ, hash_centres
from deephash_pipeline.losses.class_centres import draw_distinct_codes, smallest_distance


def test_a_code_at_its_centre_costs_nothing_and_has_every_bit_right():
    loss = CSQ(code_length=16, classes=10)
    labels = torch.arange(10)
    assert loss(30 * loss.centres[labels], labels).item() == pytest.approx(0, abs=1e-9)
    assert loss.metrics["bit_accuracy"] == 1


@pytest.mark.parametrize(("classes", "code_length"), [(2, 2), (10, 16), (10, 32), (10, 64), (20, 16)])
def test_hadamard_centres_differ_in_half_of_the_bits_and_from_their_negatives_in_all(classes, code_length):
    centres = hash_centres(classes, code_length, 0)
    distances = (centres[:, None] != centres[None]).sum(2)
    with_negatives = {code_length} if classes > code_length else set()
    assert set(distances[~np.eye(classes, dtype=bool)]) == {code_length // 2} | with_negatives


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(6, 60))
def test_centres_are_distinct_codes(seed, classes, code_length):
    centres = hash_centres(classes, code_length, seed)
    assert centres.shape == (classes, code_length)
    assert set(np.unique(centres)) <= {-1, 1}
    assert len(np.unique(centres, axis=0)) == classes


def test_drawn_centres_lie_apart_and_their_bits_are_fair():
    centres = hash_centres(100, 48, 1)
    distances = (centres[:, None] != centres[None]).sum(2)[np.triu_indices(100, 1)]
    assert smallest_distance(centres) == distances.min() >= 8
    assert distances.mean() == pytest.approx(24, abs=0.5)


def test_the_seed_decides_the_drawn_centres():
    assert np.array_equal(CSQ(12, 10, 1).centres, hash_centres(10, 12, 1))
    assert not np.array_equal(hash_centres(10, 12, 1), hash_centres(10, 12, 2))


def test_every_code_is_a_centre_if_there_are_as_many_classes():
    assert len(np.unique(hash_centres(8, 3, 0), axis=0)) == 8


def test_more_classes_than_codes_are_refused():
    with pytest.raises(InputError, match="3 bits have fewer codes than the 9 classes"):
        CSQ(code_length=3, classes=9)


def test_centres_are_the_draws_one_by_one_and_those_of_many_classes_are_no_two_alike():
    generator = np.random.default_rng(3)
    one_by_one = {}
    while len(one_by_one) < 28:
        code = generator.choice(np.array([-1, 1], dtype=np.float32), 5)
        one_by_one[code.tobytes()] = code
    np.testing.assert_array_equal(draw_distinct_codes(28, 5, 3), list(one_by_one.values()))
    many = hash_centres(40_000, 128)
    assert len(np.unique(np.packbits(many > 0, axis=1), axis=0)) == 40_000
    assert smallest_distance(many[:5000]) > 20
