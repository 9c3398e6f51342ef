import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing import OneOfC
from deephash_pipeline.retrieval import count_distances, pack_bits, retrieval_metrics


def test_exactly_the_bit_of_the_most_likely_class_is_set(z):
    generator = np.random.default_rng(1)
    weights, bias = generator.normal(size=(20, 10)).astype(np.float32), generator.normal(size=10)
    codes = OneOfC.from_arrays(10, {"weights": weights, "bias": bias}).transform(z)
    assert (codes.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(codes.argmax(axis=1), (z.astype(np.float64) @ weights + bias).argmax(axis=1))


def test_of_equally_likely_classes_the_lowest_is_named():
    encoder = OneOfC.from_arrays(3, {"weights": np.ones((2, 3)), "bias": np.array([0.0, 1.0, 1.0])})
    np.testing.assert_array_equal(encoder.transform(np.zeros((1, 2))), [[False, True, False]])


def test_a_perfect_classifier_has_a_mean_average_precision_of_one():
    labels = np.arange(60) % 10
    encoder = OneOfC.from_arrays(10, {"weights": np.eye(10), "bias": np.zeros(10)})
    codes = pack_bits(encoder.transform(np.eye(10)[labels]))
    metrics = retrieval_metrics(count_distances(codes, labels, codes, labels, 10))
    assert metrics["mean_average_precision"] == 1.0


def test_the_code_of_397_classes_is_counted_and_measured_by_the_confusions_of_the_classifier():
    classes, labels = 397, np.arange(3 * 397) % 397
    predicted = np.where(np.arange(len(labels)) < 100, (labels + 1) % classes, labels)
    encoder = OneOfC.from_arrays(classes, {"weights": np.eye(classes), "bias": np.zeros(classes)})
    codes = pack_bits(encoder.transform(np.eye(classes)[predicted]))
    assert codes.shape == (len(labels), 50)
    histograms = count_distances(codes, labels, codes, labels, classes)
    same_prediction = predicted[:, np.newaxis] == predicted
    same_label = labels[:, np.newaxis] == labels
    np.testing.assert_array_equal(histograms.all[:, 0], same_prediction.sum(axis=1))
    np.testing.assert_array_equal(histograms.all[:, 2], (~same_prediction).sum(axis=1))
    np.testing.assert_array_equal(histograms.relevant[:, 0], (same_prediction & same_label).sum(axis=1))
    precision = np.mean([average_precision_by_confusion(*row) for row in zip(same_prediction, same_label, strict=True)])
    assert retrieval_metrics(histograms)["mean_average_precision"] == pytest.approx(precision)


def average_precision_by_confusion(predicted_alike, relevant):
    """AP of two groups of items, each in random order: the expected precision at every relevant item's place."""
    total, found, before = 0.0, 0, 0
    for group in (predicted_alike, ~predicted_alike):
        size, hits = int(group.sum()), int((group & relevant).sum())
        for place in range(1, size + 1):
            others = (place - 1) * (hits - 1) / (size - 1) if size > 1 else 0.0
            total += hits / size * (found + 1 + others) / (before + place)
        found, before = found + hits, before + size
    return total / found


def test_more_classes_than_retrieval_counts_bits_are_refused():
    with pytest.raises(InputError, match="code_length is 4097 bits; choose one from 1 to 4096"):
        OneOfC.from_arrays(4097, {"weights": np.zeros((1, 4097)), "bias": np.zeros(4097)})
