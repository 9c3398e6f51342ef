import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing import OneOfC


def test_exactly_the_bit_of_the_most_likely_class_is_set(z):
    generator = np.random.default_rng(1)
    weights, bias = generator.normal(size=(20, 10)).astype(np.float32), generator.normal(size=10)
    codes = OneOfC.from_arrays(10, {"weights": weights, "bias": bias}).transform(z)
    assert (codes.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(codes.argmax(axis=1), (z.astype(np.float64) @ weights + bias).argmax(axis=1))


def test_of_equally_likely_classes_the_lowest_is_named():
    encoder = OneOfC.from_arrays(3, {"weights": np.ones((2, 3)), "bias": np.array([0.0, 1.0, 1.0])})
    np.testing.assert_array_equal(encoder.transform(np.zeros((1, 2))), [[False, True, False]])


def test_more_classes_than_retrieval_counts_bits_are_refused():
    with pytest.raises(InputError, match="code_length is 4097 bits; choose one from 1 to 4096"):
        OneOfC.from_arrays(4097, {"weights": np.zeros((1, 4097)), "bias": np.zeros(4097)})
