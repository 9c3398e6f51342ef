import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval.code_files import LabelledCodes
from deephash_pipeline.retrieval.stable_order import stable_order_average_precision
from tests.retrieval.random_codes import EQUAL, distances_to, is_relevant, random_problem


def with_several_labels(problem, seed, classes):
    """The first query has no class at all; of many classes, an item has two on average."""
    rng = np.random.default_rng(seed)
    query_labels = rng.random((len(problem.query_codes), classes)) < 2 / (classes + 2)
    query_labels[0] = False
    database_labels = rng.random((len(problem.database_codes), classes)) < 2 / (classes + 2)
    return problem._replace(query_labels=query_labels, database_labels=database_labels)


def sorted_average_precision(problem, k=None):
    figures = []
    for code, label in zip(problem.query_codes, problem.query_labels, strict=True):
        relevant, order = is_relevant(problem, label), np.argsort(distances_to(problem, code), kind="stable")
        hits = 1 + np.flatnonzero(relevant[order])
        precisions = np.arange(1, len(hits) + 1) / hits
        counted = len(problem.database_codes) if k is None else k
        figures.append(sum(precisions[hits <= counted]) / min(len(hits), counted) if len(hits) else np.nan)
    return figures


def assert_as_sorted(problem, k=None):
    found = stable_order_average_precision(problem, k=k)
    np.testing.assert_allclose(found, sorted_average_precision(problem, k), rtol=1e-12)


sizes = {
    "seed": st.integers(0, 2**32 - 1),
    "queries": st.integers(1, 6),
    "items": st.integers(1, 70),
    "code_length": st.integers(1, 504) | st.integers(505, 4096),
    "prototypes": st.integers(1, 80),
    "k": st.none() | st.integers(1, 80),
}


@given(classes=st.integers(1, 5), **sizes)
@settings(deadline=None)
def test_figures_equal_those_of_a_stable_sort(seed, queries, items, code_length, prototypes, k, classes):
    assert_as_sorted(random_problem(seed, queries, items, code_length, classes, prototypes), k)


@given(classes=st.integers(1, 130), **sizes)
@settings(deadline=None)
def test_an_item_with_several_labels_is_relevant_if_it_shares_one(
    seed, queries, items, code_length, prototypes, k, classes
):
    problem = random_problem(seed, queries, items, code_length, prototypes=prototypes)
    assert_as_sorted(with_several_labels(problem, seed, classes), k)


@pytest.mark.parametrize("k", [None, 1029])
def test_figures_are_right_for_thousands_of_items_and_two_words_of_labels(k):
    problem = random_problem(seed=0, queries=6, items=9219, code_length=65, classes=2)
    assert_as_sorted(problem, k)
    assert_as_sorted(with_several_labels(problem, seed=0, classes=70), k)


def test_a_database_of_one_code_is_ranked_by_index_alone():
    assert_as_sorted(random_problem(seed=1, queries=9, items=8199, code_length=256, classes=3, prototypes=1))


def test_labels_beyond_the_digits_of_a_float_stay_apart():
    codes = np.zeros((2, 1), dtype=np.uint8)
    large = np.array([2**60, 2**60 + 1])
    found = stable_order_average_precision(LabelledCodes(codes, large, codes, large.astype(np.uint64), code_length=8))
    assert found.tolist() == [1, 1 / 2]


def test_a_query_without_relevant_items_has_no_average_precision():
    codes = np.zeros((2, 1), dtype=np.uint8)
    labels = np.array([0, 1])
    found = stable_order_average_precision(LabelledCodes(codes, labels, codes, np.array([0, 0]), code_length=8))
    assert found[0] == 1
    assert np.isnan(found[1])


@pytest.mark.skipif(numba.get_num_threads() < 2, reason="one thread is all there is")
@pytest.mark.usefixtures("restored_threads")
@pytest.mark.parametrize("queries", [1, 101])
def test_the_number_of_threads_does_not_matter(queries):
    single = random_problem(seed=5, queries=queries, items=5000, code_length=48)
    for problem in (single, with_several_labels(single, seed=6, classes=20)):
        numba.set_num_threads(1)
        one = stable_order_average_precision(problem)
        numba.set_num_threads(2)
        np.testing.assert_array_equal(stable_order_average_precision(problem), one)


@pytest.mark.parametrize(
    ("changes", "k", "message"),
    [
        ({"database_labels": np.zeros(4)}, None, "database_labels"),
        *(({}, k, f"k is {k}; give a whole number") for k in (0, True, 2.0)),
    ],
)
def test_input_that_cannot_be_ranked_is_refused_by_name(changes, k, message):
    with pytest.raises(InputError, match=message):
        stable_order_average_precision(LabelledCodes(**(EQUAL | changes)), k)
