"""Mean average precision of codes, and classes of features to measure it on."""

import numpy as np

from deephash_pipeline.retrieval import count_distances, pack_bits, retrieval_metrics

LABELS = np.arange(3000) % 10


def ten_classes(spread=0.7):
    """128 features of 3,000 rows after a ReLU, around a mean for each of the ten classes."""
    generator = np.random.default_rng(7)
    means = spread * generator.normal(size=(10, 128))
    return np.maximum(means[LABELS] + generator.normal(size=(3000, 128)), 0.0).astype(np.float32)


def mean_average_precision(hash_function, z, labels=LABELS, queries=500):
    """Of the first rows as queries in the others, from which the hash function learns."""
    codes = pack_bits(hash_function.fit(z[queries:], labels[queries:]).transform(z))
    counted = codes[:queries], labels[:queries], codes[queries:], labels[queries:]
    return float(retrieval_metrics(count_distances(*counted, hash_function.code_length))["mean_average_precision"])
