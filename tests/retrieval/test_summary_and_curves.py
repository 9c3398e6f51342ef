"""What all queries have together: the summary of their figures, the curves and the chance level."""

import math

import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval import (
    average_precision,
    average_precision_at,
    average_precision_bounds,
    chance_level,
    count_distances,
    pack_bits,
    precision_at,
    precision_recall_by_radius,
    precision_recall_by_rank,
    precision_within_radius,
    recall_at,
    retrieval_metrics,
)
from deephash_pipeline.retrieval.groups import BLOCK_QUERIES
from tests.retrieval.small_histograms import histograms_of, random_histograms


def test_the_curve_by_radius_sums_counts_over_queries_before_it_divides():
    curve = precision_recall_by_radius(histograms_of([(0, 0), (1, 1), (3, 1)], [(0, 0), (3, 0), (1, 1)]))
    assert curve.point.tolist() == [0, 1, 2]
    np.testing.assert_allclose(curve.precision, [np.nan, 1 / 4, 3 / 8])
    np.testing.assert_allclose(curve.recall, [0, 1 / 3, 1])


@pytest.mark.parametrize("queries", [30, 2 * BLOCK_QUERIES + 3])
def test_the_curve_by_rank_is_the_mean_of_the_figures_at_each_rank(queries):
    histograms = random_histograms(queries=queries)
    evaluated = histograms.relevant_items > 0
    ranks = np.array([1, 2, 3, 50, 199, 200, 1000])
    curve = precision_recall_by_rank(histograms, ranks)
    np.testing.assert_array_equal(curve.point, ranks)
    precision = [precision_at(histograms, int(k))[evaluated].mean() for k in ranks]
    recall = [recall_at(histograms, int(k))[evaluated].mean() for k in ranks]
    np.testing.assert_allclose(curve.precision, precision, rtol=1e-13)
    np.testing.assert_allclose(curve.recall, recall, rtol=1e-13)


def test_the_chance_level_is_the_score_of_equal_codes():
    rng = np.random.default_rng(0)
    query_labels, database_labels = rng.integers(0, 6, 40), rng.integers(0, 4, 300)
    codes = [pack_bits(np.zeros((len(labels), 12), dtype=bool)) for labels in (query_labels, database_labels)]
    histograms = count_distances(codes[0], query_labels, codes[1], database_labels, 12)
    expected = retrieval_metrics(histograms)["mean_average_precision"]
    assert chance_level(query_labels, database_labels) == pytest.approx(expected, rel=1e-14)


def test_the_chance_level_of_unknown_classes_is_undefined():
    assert math.isnan(chance_level(np.array([5, 6]), np.array([0, 1])))
    with pytest.raises(InputError, match="query_labels must be a one-dimensional integer array"):
        chance_level([5, 6], np.array([0, 1]))


def test_the_summary_means_over_queries_with_relevant_items_and_counts_the_others():
    histograms = random_histograms()
    evaluated = np.arange(30) % 4 != 3
    optimistic, pessimistic = average_precision_bounds(histograms)
    precision, failed = precision_within_radius(histograms, 2)
    assert retrieval_metrics(histograms) == {
        "mean_average_precision": np.mean(average_precision(histograms)[evaluated]),
        "mean_average_precision_optimistic": np.mean(optimistic[evaluated]),
        "mean_average_precision_pessimistic": np.mean(pessimistic[evaluated]),
        "mean_average_precision_at_1000": np.mean(average_precision_at(histograms, 1000)[evaluated]),
        "precision_at_1000": np.mean(precision_at(histograms, 1000)[evaluated]),
        "precision_within_radius_2": np.mean(precision[evaluated]),
        "lookup_failure_rate_radius_2": np.mean(failed[evaluated]),
        "queries": 30,
        "queries_without_relevant_items": 7,
        "database_size": 200,
    }


def test_the_summary_is_undefined_but_complete_when_no_query_has_a_relevant_item():
    metrics = retrieval_metrics(histograms_of([(2, 0), (1, 0)]))
    counts = {"queries": 1, "queries_without_relevant_items": 1, "database_size": 3}
    assert {name: metrics.pop(name) for name in counts} == counts
    assert len(metrics) == 7
    assert all(math.isnan(value) for value in metrics.values())


def test_curves_are_undefined_when_no_query_has_a_relevant_item():
    histograms = histograms_of([(2, 0), (1, 0)])
    for curve in (precision_recall_by_radius(histograms), precision_recall_by_rank(histograms, np.array([1, 2]))):
        assert np.isnan(curve.precision).all()
        assert np.isnan(curve.recall).all()


@pytest.mark.parametrize("ranks", [np.array([0, 1]), np.array([1.0]), np.array([[1]])])
def test_ranks_that_are_no_whole_numbers_from_one_are_refused(ranks):
    with pytest.raises(InputError, match="ranks"):
        precision_recall_by_rank(histograms_of([(2, 1)]), ranks)
