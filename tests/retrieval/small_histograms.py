"""Histograms of few distances: given by hand, or counted from random codes."""

import numpy as np

from deephash_pipeline.retrieval import DistanceHistograms, count_distances, pack_bits


def histograms_of(*queries):
    counts = np.array(queries, dtype=np.int64)
    return DistanceHistograms(all=counts[:, :, 0], relevant=counts[:, :, 1])


def random_histograms(seed=0, queries=30):
    """Four classes of queries on a database of three, so that some queries have no relevant item."""
    rng = np.random.default_rng(seed)
    return count_distances(
        pack_bits(rng.random((queries, 6)) < 0.5),
        np.arange(queries) % 4,
        pack_bits(rng.random((200, 6)) < 0.5),
        rng.integers(0, 3, 200),
        code_length=6,
    )
