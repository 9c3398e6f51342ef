"""Metrics of graded relevance are means over all orders of ties, and their counts those of a plain loop."""

from fractions import Fraction
from functools import partial
from itertools import chain, permutations, product
from math import fsum, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval import (
    GradedHistograms,
    acg_at,
    average_precision_at_by_hits,
    chance_level,
    count_distances,
    count_shared_labels,
    graded_metrics,
    mean_average_precision,
    ndcg_at,
    pack_bits,
    wap_at,
)
from deephash_pipeline.retrieval.kernels.histograms import BLOCK_ITEMS

EXAMPLE = [[2, 0, 1], [], [1, 0, 0, 3], [0, 2]]

grades = st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=3).filter(
    lambda drawn: any(chain.from_iterable(drawn))
)


def histograms_of(*queries):
    distances = max(map(len, queries))
    counts = np.zeros(
        (1 + max(max(chain.from_iterable(query)) for query in queries), len(queries), distances), np.int64
    )
    for number, query in enumerate(queries):
        for distance, of_group in enumerate(query):
            np.add.at(counts, (list(of_group), number, distance), 1)
    return GradedHistograms(counts)


def orders(drawn):
    """Every equally likely order of the items, as a list of their grades."""
    for order in product(*(set(permutations(group)) for group in drawn)):
        yield list(chain.from_iterable(order))


def mean_over_orders(drawn, of_order):
    values = [of_order(order) for order in orders(drawn)]
    return float(fsum(values) / len(values))


def dcg(order, k):
    return fsum((2**grade - 1) / log2(1 + place) for place, grade in enumerate(order[:k], start=1))


def ndcg(order, k):
    return dcg(order, k) / dcg(sorted(order, reverse=True), k)


def acg(order, k):
    return Fraction(sum(order[:k]), min(k, len(order)))


def wap(order, k):
    relevant = sum(grade > 0 for grade in order)
    places = [place for place, grade in enumerate(order[:k], start=1) if grade]
    return sum((acg(order, place) for place in places), Fraction(0)) / min(relevant, k)


def average_precision_by_hits(order, k):
    places = [place for place, grade in enumerate(order[:k], start=1) if grade]
    precisions = [Fraction(number, place) for number, place in enumerate(places, start=1)]
    return sum(precisions, Fraction(0)) / max(len(places), 1)


@given(grades, st.integers(1, 13))
@settings(deadline=None, max_examples=30)
def test_graded_metrics_equal_their_means_over_all_orders_of_ties(drawn, k):
    histograms = histograms_of(drawn)
    for metric, of_order in ((ndcg_at, ndcg), (acg_at, acg), (wap_at, wap)):
        exact = mean_over_orders(drawn, partial(of_order, k=k))
        assert metric(histograms, k)[0] == pytest.approx(exact, abs=1e-12)
    exact = mean_over_orders(drawn, partial(average_precision_by_hits, k=k))
    assert average_precision_at_by_hits(histograms.distances, k)[0] == pytest.approx(exact, abs=1e-12)


def test_a_query_that_shares_nothing_with_any_item_has_no_metric_and_is_left_out_of_the_means():
    both, alone = histograms_of(EXAMPLE, [[0] * 9]), histograms_of(EXAMPLE)
    assert all(np.isnan(metric(both, 3)[1]) for metric in (ndcg_at, acg_at, wap_at))
    assert np.isnan(average_precision_at_by_hits(both.distances, 3)[1])
    assert graded_metrics(both, 3) == graded_metrics(alone, 3)


def test_late_places_of_a_large_database_lose_no_digit():
    counts = np.zeros((2, 1, 3), dtype=np.int64)
    counts[0, 0], counts[1, 0, 1] = (999_990, 9, 5), 1
    exact = fsum(1 / log2(1 + place) for place in range(999_991, 1_000_001)) / 10
    assert ndcg_at(GradedHistograms(counts), 1_000_004)[0] == pytest.approx(exact, rel=1e-12)


@given(
    seed=st.integers(0, 2**32 - 1),
    queries=st.integers(1, 4),
    items=st.integers(1, 70),
    code_length=st.integers(1, 100),
    classes=st.integers(1, 70),
    share=st.floats(0, 0.9),
)
@settings(deadline=None, max_examples=60)
def test_shared_labels_are_counted_as_by_a_plain_loop(seed, queries, items, code_length, classes, share):
    rng = np.random.default_rng(seed)
    bits = rng.random((queries + items, code_length)) < 0.5
    labels = (rng.random((queries + items, classes)) < share).astype(np.uint8)
    codes = pack_bits(bits)
    found = count_shared_labels(codes[:queries], labels[:queries], codes[queries:], labels[queries:], code_length)
    expected = np.zeros((classes + 1, queries, code_length + 1), dtype=np.int64)
    for query in range(queries):
        distances = np.count_nonzero(bits[queries:] != bits[query], axis=1)
        shared = np.count_nonzero(labels[queries:] & labels[query], axis=1)
        np.add.at(expected, (shared, query, distances), 1)
    np.testing.assert_array_equal(found.counts, expected[: len(found.counts)])
    assert not expected[len(found.counts) :].any()


def test_items_of_several_blocks_are_counted_once():
    items = BLOCK_ITEMS * 8 + 77
    rng = np.random.default_rng(0)
    codes, labels = pack_bits(rng.random((items, 8)) < 0.5), rng.random((items, 3)) < 0.4
    found = count_shared_labels(codes[:2], labels[:2], codes, labels, 8)
    parts = [
        count_shared_labels(codes[:2], labels[:2], codes[part], labels[part], 8)
        for part in np.split(np.arange(items), [100])
    ]
    np.testing.assert_array_equal(parts[0].merge(parts[1]).counts, found.counts)
    assert (found.counts.sum(axis=(0, 2)) == items).all()
    binary = count_distances(codes[:2], labels[:2], codes, labels, 8)
    np.testing.assert_array_equal(binary.relevant, found.distances.relevant)


def test_chance_level_of_several_labels_is_the_metric_of_equal_codes():
    rng = np.random.default_rng(0)
    labels = rng.random((40, 4)) < 0.3
    equal = np.zeros((40, 1), dtype=np.uint8)
    expected = mean_average_precision(count_distances(equal[:9], labels[:9], equal[9:], labels[9:], 8))
    assert chance_level(labels[:9], labels[9:]) == pytest.approx(expected, abs=1e-15)


def test_labels_that_are_no_zeros_and_ones_and_histograms_that_are_no_counts_are_refused():
    codes = np.zeros((2, 1), dtype=np.uint8)
    with pytest.raises(InputError, match="query_labels holds 2; give 1 for each label"):
        count_shared_labels(codes, np.full((2, 3), 2, np.uint8), codes, np.ones((2, 3), np.uint8), 8)
    with pytest.raises(InputError, match="use count_distances"):
        count_shared_labels(codes, np.zeros(2, np.int64), codes, np.zeros(2, np.int64), 8)
    with pytest.raises(InputError, match="must not be negative"):
        GradedHistograms(np.full((2, 1, 3), -1, dtype=np.int64))
    with pytest.raises(InputError, match="k is 0; give a whole number"):
        ndcg_at(histograms_of(EXAMPLE), 0)
