"""The codes of CNNH: how well their products are the matrix of similarities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.losses.similarity_codes import factorise_classes, similarity_codes


def slow_error(codes, labels):
    s = np.where(labels[:, None] == labels[None], 1.0, -1.0)
    return float(((s - codes @ codes.T / codes.shape[1]) ** 2).mean())


def some_labels(seed, samples, classes):
    generator = np.random.default_rng(seed)
    return np.concatenate([np.arange(classes), generator.integers(0, classes, samples)]), generator


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


def test_the_seed_decides_the_codes():
    labels = np.arange(60) % 3
    first, again, other = (similarity_codes(labels, 12, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_class_without_images_still_has_a_code():
    codes = similarity_codes([0, 3, 3, 0, 1], 6)
    assert codes.shape == (4, 6)
    assert set(np.unique(codes)) <= {-1, 1}


@pytest.mark.parametrize("labels", [[], [0.0, 1.0], [[0, 1]], [-1, 2]], ids=str)
def test_labels_that_are_no_classes_are_refused(labels):
    with pytest.raises(InputError, match="classes numbered from 0"):
        similarity_codes(labels, 8)
