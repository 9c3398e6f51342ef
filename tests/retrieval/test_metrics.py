from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval import (
    DistanceHistograms,
    average_precision,
    average_precision_at,
    average_precision_bounds,
    precision_at,
    precision_within_radius,
    recall_at,
)
from deephash_pipeline.retrieval.groups import BLOCK_QUERIES
from tests.retrieval.small_histograms import histograms_of, random_histograms

groups = st.lists(
    st.integers(0, 4).flatmap(lambda items: st.tuples(st.just(items), st.integers(0, items))), min_size=1, max_size=4
).filter(lambda drawn: any(relevant for _, relevant in drawn))


def orders(groups):
    """Every equally likely order of the items, as a list of which are relevant."""
    placements = [combinations(range(items), relevant) for items, relevant in groups]
    for places in product(*placements):
        yield [
            place in relevant_places
            for (items, _), relevant_places in zip(groups, places, strict=True)
            for place in range(items)
        ]


def average_precision_of_order(order, k):
    hits = [rank for rank, relevant in enumerate(order, start=1) if relevant]
    precisions = [Fraction(number, rank) for number, rank in enumerate(hits, start=1) if rank <= k]
    return sum(precisions, Fraction(0)) / min(len(hits), k)


def mean(values):
    return float(sum(values, Fraction(0)) / len(values))


@given(groups, st.integers(1, 20))
@settings(deadline=None, max_examples=60)
def test_figures_equal_their_means_over_all_orders_of_ties_and_bounds_their_best_and_worst(drawn, k):
    histograms, all_orders = histograms_of(drawn), list(orders(drawn))
    exact = [average_precision_of_order(order, len(order)) for order in all_orders]
    assert average_precision(histograms)[0] == pytest.approx(mean(exact), abs=1e-14)
    optimistic, pessimistic = average_precision_bounds(histograms)
    assert optimistic[0] == pytest.approx(float(max(exact)), abs=1e-14)
    assert pessimistic[0] == pytest.approx(float(min(exact)), abs=1e-14)
    k_in_database = min(k, histograms.database_size)
    hits = [Fraction(sum(order[:k_in_database])) for order in all_orders]
    at_k = mean([average_precision_of_order(order, k_in_database) for order in all_orders])
    assert average_precision_at(histograms, k)[0] == pytest.approx(at_k, abs=1e-14)
    assert precision_at(histograms, k)[0] == pytest.approx(mean(hits) / k_in_database, abs=1e-14)
    relevant = int(histograms.relevant_items[0])
    assert recall_at(histograms, k)[0] == pytest.approx(mean(hits) / relevant, abs=1e-14)


def test_average_precision_among_a_million_items_is_exact_to_fifteen_digits():
    drawn = [(400_000, 40_000), (3, 2), (599_997, 60_000)]
    scale, items_before, relevant_before, total = 10**40, 0, 0, 0
    for items, relevant in drawn:
        for place in range(1, items + 1):
            numerator = relevant * ((relevant_before + 1) * (items - 1) + (place - 1) * (relevant - 1))
            total += numerator * scale // (items * (items - 1) * (items_before + place))
        items_before, relevant_before = items_before + items, relevant_before + relevant
    exact = float(Fraction(total, scale * relevant_before))
    assert average_precision(histograms_of(drawn))[0] == pytest.approx(exact, rel=1e-15, abs=0)


def test_a_query_without_relevant_items_has_no_average_precision_and_is_not_zero():
    histograms = histograms_of([(2, 0), (2, 0)], [(2, 2), (2, 0)])
    optimistic, pessimistic = average_precision_bounds(histograms)
    for values in (average_precision(histograms), average_precision_at(histograms, 2), optimistic, pessimistic):
        np.testing.assert_array_equal(values, [np.nan, 1])


def test_an_empty_ball_is_a_failed_lookup_of_precision_zero():
    precision, failed = precision_within_radius(histograms_of([(0, 0), (0, 0), (4, 3)], [(0, 0), (2, 1), (2, 0)]), 1)
    assert precision.tolist() == [0, 0.5]
    assert failed.tolist() == [True, False]


def test_a_ball_wider_than_the_code_holds_the_whole_database():
    precision, failed = precision_within_radius(histograms_of([(0, 0), (4, 3)]), 99)
    assert precision.tolist() == [0.75]
    assert failed.tolist() == [False]


def test_a_query_has_the_same_figures_alone_and_among_many():
    many = random_histograms(queries=2 * BLOCK_QUERIES + 3)
    for query in (0, 2, BLOCK_QUERIES - 1, BLOCK_QUERIES, 2 * BLOCK_QUERIES, 2 * BLOCK_QUERIES + 2):
        alone = DistanceHistograms(many.all[[query]], many.relevant[[query]])
        np.testing.assert_array_equal(average_precision(many)[query], average_precision(alone)[0])
        np.testing.assert_array_equal(average_precision_bounds(many)[0][query], average_precision_bounds(alone)[0][0])
        np.testing.assert_array_equal(average_precision_bounds(many)[1][query], average_precision_bounds(alone)[1][0])
        for figure in (average_precision_at, precision_at, recall_at):
            np.testing.assert_array_equal(figure(many, 17)[query], figure(alone, 17)[0])


@pytest.mark.parametrize("k", [0, -1, 2.5, True])
def test_a_rank_that_is_no_whole_number_from_one_is_refused(k):
    for figure in (average_precision_at, precision_at, recall_at):
        with pytest.raises(InputError, match=f"k is {k!r}"):
            figure(histograms_of([(2, 1)]), k)


@pytest.mark.parametrize("radius", [-1, 0.5, False])
def test_a_radius_that_is_no_whole_number_from_zero_is_refused(radius):
    with pytest.raises(InputError, match=f"radius is {radius!r}"):
        precision_within_radius(histograms_of([(2, 1)]), radius)
