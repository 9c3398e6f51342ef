"""The codes of CNNH: how well their products are the matrix of similarities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.losses.similarity_codes import (
    SampleFactorisation,
    factorisation_error,
    factorise_classes,
    factorise_samples,
    newton_sweep,
    similarity_codes,
)

EITHER_WAY = (None, SampleFactorisation())


def slow_error(codes, labels):
    s = np.where(labels[:, None] == labels[None], 1.0, -1.0)
    return float(((s - codes @ codes.T / codes.shape[1]) ** 2).mean())


def slow_sweep(codes, labels, generator):
    """The paper's, with L = H H' - K S kept whole."""
    codes = codes.copy()
    samples, code_length = codes.shape
    left = codes @ codes.T - code_length * np.where(labels[:, None] == labels[None], 1.0, -1.0)
    for place in generator.permutation(samples * code_length):
        i, j = divmod(int(place), code_length)
        first = 4 * left[i] @ codes[:, j]
        second = 4 * (codes[:, j] @ codes[:, j] + codes[i, j] ** 2 + left[i, i])
        step = np.clip(-first / second if second > 0 else -np.sign(first) * np.inf, -1 - codes[i, j], 1 - codes[i, j])
        codes[i, j] += step
        left = codes @ codes.T - code_length * np.where(labels[:, None] == labels[None], 1.0, -1.0)
    return codes


def some_labels(seed, samples, classes):
    generator = np.random.default_rng(seed)
    return np.concatenate([np.arange(classes), generator.integers(0, classes, samples)]), generator


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 20), st.integers(1, 5), st.integers(1, 9))
def test_the_error_equals_that_of_the_whole_matrix(seed, samples, classes, code_length):
    labels, generator = some_labels(seed, samples, classes)
    codes = generator.uniform(-1, 1, (len(labels), code_length))
    assert factorisation_error(codes, labels) == pytest.approx(slow_error(codes, labels), abs=1e-12)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 4), st.integers(1, 6))
def test_a_sweep_without_the_matrix_is_the_papers_with_it(seed, samples, classes, code_length):
    labels, generator = some_labels(seed, samples, classes)
    codes = generator.uniform(-1, 1, (len(labels), code_length))
    fast, slow = (sweep(codes, labels, np.random.default_rng(seed)) for sweep in (newton_sweep, slow_sweep))
    np.testing.assert_allclose(fast, slow, atol=1e-9)
    assert np.abs(fast).max() <= 1


def test_newton_steps_lower_the_error_and_stay_in_the_box():
    labels, _ = some_labels(0, 90, 10)
    courses = [factorise_samples(labels, 12, sweeps, np.random.default_rng(3)) for sweeps in (0, 1, 5)]
    errors = [factorisation_error(codes, labels) for codes in courses]
    assert errors[0] > errors[1] > errors[2]
    assert all(np.abs(codes).max() <= 1 for codes in courses)


@pytest.mark.parametrize("code_length", [4, 12, 24])
@pytest.mark.parametrize("seed", range(3))
def test_factorising_the_classes_is_not_worse_than_factorising_the_samples(code_length, seed):
    labels, generator = some_labels(seed, 90, 10)
    by_class = factorise_classes(np.bincount(labels), code_length, generator)[labels]
    by_sample = factorise_samples(labels, code_length, 5, generator)
    signs = np.where(by_sample >= 0, 1.0, -1.0)
    assert slow_error(by_class, labels) <= slow_error(signs, labels) + 1e-12


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(1, 8))
def test_no_single_bit_of_a_class_could_be_better(seed, classes, code_length):
    labels, generator = some_labels(seed, 20, classes)
    codes = factorise_classes(np.bincount(labels), code_length, generator)
    error = slow_error(codes[labels], labels)
    for row in range(classes):
        for bit in range(code_length):
            other = codes.copy()
            other[row, bit] *= -1
            assert slow_error(other[labels], labels) >= error - 1e-9


def test_two_classes_get_opposite_codes():
    labels = np.array([0, 0, 0, 1])
    for way in EITHER_WAY:
        codes = similarity_codes(labels, 8, 1, of_samples=way)
        np.testing.assert_array_equal(codes[0], -codes[1])


@pytest.mark.parametrize("code_length", [12, 48])
@pytest.mark.parametrize("way", EITHER_WAY, ids=["classes", "samples"])
def test_codes_of_ten_classes_lie_far_apart(way, code_length):
    codes = similarity_codes(np.arange(120) % 10, code_length, of_samples=way)
    distances = (codes[:, None] != codes[None]).sum(2)[np.triu_indices(10, 1)]
    assert distances.mean() > code_length / 2
    assert distances.min() >= code_length / 4


def test_the_seed_decides_the_codes_and_no_more_samples_are_used_than_asked_for():
    labels = np.arange(60) % 3
    for way in EITHER_WAY:
        first, again, other = (similarity_codes(labels, 12, seed, of_samples=way) for seed in (1, 1, 2))
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)
    assert similarity_codes(labels, 12, of_samples=SampleFactorisation(samples=5, sweeps=1)).shape == (3, 12)


def test_a_class_without_images_still_has_a_code():
    for way in EITHER_WAY:
        codes = similarity_codes([0, 3, 3, 0, 1], 6, of_samples=way)
        assert codes.shape == (4, 6)
        assert set(np.unique(codes)) <= {-1, 1}


@pytest.mark.parametrize("labels", [[], [0.0, 1.0], [[0, 1]], [-1, 2]], ids=str)
def test_labels_that_are_no_classes_are_refused(labels):
    with pytest.raises(InputError, match="classes numbered from 0"):
        similarity_codes(labels, 8)
