import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hashing import OneOfC
from deephash_pipeline.retrieval import count_distances, pack_bits, retrieval_metrics


def test_exactly_the_bit_of_the_most_likely_class_is_set(z: NDArray[np.float32]) -> None:
    generator = np.random.default_rng(1)
    weights, bias = generator.normal(size=(20, 10)).astype(np.float32), generator.normal(size=10)
    codes = OneOfC.from_arrays(10, {"weights": weights, "bias": bias}).encode(z)
    assert (codes.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(codes.argmax(axis=1), (z.astype(np.float64) @ weights + bias).argmax(axis=1))


def test_of_equally_likely_classes_the_lowest_is_named() -> None:
    encoder = OneOfC.from_arrays(3, {"weights": np.ones((2, 3)), "bias": np.array([0.0, 1.0, 1.0])})
    np.testing.assert_array_equal(encoder.encode(np.zeros((1, 2))), [[False, True, False]])


def test_a_perfect_classifier_has_a_mean_average_precision_of_one() -> None:
    labels = np.arange(60) % 10
    encoder = OneOfC.from_arrays(10, {"weights": np.eye(10), "bias": np.zeros(10)})
    codes = pack_bits(encoder.encode(np.eye(10)[labels]))
    metrics = retrieval_metrics(count_distances(codes, labels, codes, labels, 10))
    assert metrics["mean_average_precision"] == 1.0
