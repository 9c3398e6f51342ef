"""The ranking that graded metrics are timed beside gives one order of what they are the expectation of."""

import numpy as np
import pytest

from benchmarks.graded import draw, sorted_metrics
from deephash_pipeline.retrieval import count_shared_labels, graded_metrics, pack_bits


def test_without_ties_sorting_gives_the_same_metrics():
    # Item i differs from the query of zeros in i bits.
    bits = np.tri(40, 40, -1, dtype=bool)
    query = np.zeros((1, 40), dtype=bool)
    _, labels = draw(41, 4, np.random.default_rng(0))
    sets = (pack_bits(query), labels[:1], pack_bits(bits), labels[1:], 40)
    signs = [
        (2 * codes.astype(np.float32) - 1, of.astype(np.float32))
        for codes, of in ((query, labels[:1]), (bits, labels[1:]))
    ]
    for k in (3, 40):
        assert sorted_metrics(signs[0], signs[1], k) == pytest.approx(
            graded_metrics(count_shared_labels(*sets), k), rel=1e-6
        )
