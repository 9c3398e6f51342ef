"""Retrieval by real-valued features against a plain sort, and against codes, whose Hamming distances are such too."""

import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval import (
    GradedHistograms,
    count_distances,
    count_shared_labels,
    pack_bits,
    real_valued,
    retrieval_metrics,
)
from deephash_pipeline.retrieval.real_valued import real_valued_metrics


def test_average_precision_is_that_of_the_sorted_items(monkeypatch):
    monkeypatch.setattr(real_valued, "DISTANCES_PER_BLOCK", 200)
    generator = np.random.default_rng(0)
    queries, items = generator.normal(size=(13, 4)).astype(np.float32), generator.normal(size=(60, 4))
    query_labels, item_labels = generator.integers(0, 3, 13), generator.integers(0, 3, 60)
    expected = []
    for query, label in zip(queries, query_labels, strict=True):
        hits = (item_labels == label)[np.argsort(((items - query) ** 2).sum(axis=1))]
        expected.append((np.cumsum(hits) / np.arange(1, 61))[hits].mean())
    found = real_valued_metrics(queries, query_labels, items, item_labels)
    wanted = dict.fromkeys(("mean_average_precision", "mean_average_precision_at_1000"), np.mean(expected))
    wanted |= {"precision_at_1000": np.mean(query_labels[:, None] == item_labels), "queries": 13, "database_size": 60}
    assert {name: found[name] for name in wanted} == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("several", [False, True])
def test_codes_as_features_have_the_metrics_of_the_codes(several):
    generator = np.random.default_rng(1)
    queries, items = generator.random((20, 8)) < 0.5, generator.random((1200, 8)) < 0.5
    if several:
        labels = [(generator.random((count, 5)) < 0.2).astype(np.uint8) for count in (20, 1200)]
        labels[0][0] = 0
    else:
        labels = [generator.integers(0, 6, count) for count in (20, 1200)]
        labels[0][0] = 9
    count = count_shared_labels if several else count_distances
    counts = count(pack_bits(queries), labels[0], pack_bits(items), labels[1], 8)
    expected = retrieval_metrics(counts.distances if isinstance(counts, GradedHistograms) else counts)
    found = real_valued_metrics(queries * 1.0, labels[0], items * 1.0, labels[1])
    assert len(found.keys() & expected.keys()) > 4
    for name in found.keys() & expected.keys():
        assert found[name] == pytest.approx(expected[name], abs=1e-12), name
    assert found["queries_without_relevant_items"] > 0


def test_features_of_another_length_or_not_finite_are_refused_in_one_line():
    with pytest.raises(InputError, match=r"^queries have shape \(2, 3\) and items \(4, 5\): give"):
        real_valued_metrics(np.zeros((2, 3)), np.zeros(2, int), np.zeros((4, 5)), np.zeros(4, int))
    with pytest.raises(InputError, match="items holds NaN or infinity, "):
        real_valued_metrics([[0, 0, 0]] * 2, np.zeros(2, int), np.full((4, 3), np.nan), np.zeros(4, int))
