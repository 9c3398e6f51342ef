import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from deephash_pipeline.errors import InputError
from deephash_pipeline.significance import SignificanceParameters, compare_with_best, holm, paired_bootstrap

QUICK = SignificanceParameters(resamples=2000)
P_VALUES = st.lists(st.floats(1e-6, 1), min_size=1, max_size=8)
QUERIES = np.random.default_rng(0).uniform(0.2, 0.9, 300)


def noisy(seed: int, size: int = 300, scale: float = 0.05) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(0, scale, size)


def slow_holm(p_values: list[float]) -> list[float]:
    """A test's adjusted p-value is the lowest level at which Holm's procedure, step by step, rejects it."""
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for step, test in enumerate(sorted(range(len(p_values)), key=lambda test: p_values[test])):
        highest = max(highest, (len(p_values) - step) * p_values[test])
        adjusted[test] = min(1.0, highest)
    return adjusted


@given(P_VALUES)
def test_holm_is_holms_procedure_step_by_step(p_values: list[float]) -> None:
    assert holm(p_values).tolist() == slow_holm(p_values)


@given(P_VALUES, st.randoms())
def test_holm_does_not_depend_on_the_order_of_the_tests(p_values: list[float], random: object) -> None:
    order = list(range(len(p_values)))
    random.shuffle(order)  # type: ignore[attr-defined]
    shuffled = holm([p_values[test] for test in order])
    assert shuffled.tolist() == holm(p_values)[order].tolist()


@given(P_VALUES)
def test_holm_lies_between_the_single_test_and_bonferroni(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert (adjusted >= p_values).all()
    assert (adjusted <= np.minimum(1, np.multiply(len(p_values), p_values))).all()


def test_the_bootstrap_of_few_queries_agrees_with_all_possible_resamples() -> None:
    differences = np.array([0.3, -0.1, 0.2, 0.05])
    means = np.array([np.mean(drawn) for drawn in itertools.product(differences, repeat=4)])
    exact = 2 * min((means <= 0).mean(), (means >= 0).mean())
    low, high, p_value = paired_bootstrap(differences[None], SignificanceParameters(), 0)
    assert p_value[0] == pytest.approx(exact, abs=0.01)
    assert (low[0], high[0]) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.03)


def test_the_bootstrap_of_many_queries_agrees_with_the_paired_t_test() -> None:
    differences = np.stack([noisy(1, 400) + shift for shift in (0.0, 0.003, 0.006)])
    _, _, p_values = paired_bootstrap(differences, SignificanceParameters(), 0)
    expected = scipy.stats.ttest_1samp(differences, 0, axis=1)
    assert p_values == pytest.approx(expected.pvalue, abs=0.02)


def test_of_equal_methods_few_pairs_are_called_different() -> None:
    differences = np.stack([noisy(seed, 150) for seed in range(400)])
    _, _, p_values = paired_bootstrap(differences, SignificanceParameters(resamples=500), 0)
    assert 0.02 < (p_values < 0.05).mean() < 0.09


def test_a_difference_on_every_query_is_found_and_none_is_a_tie() -> None:
    standing = compare_with_best({"a": QUERIES, "b": QUERIES - 0.01, "c": QUERIES}, QUICK)
    assert [found.tied for found in standing.values()] == [True, False, True]
    assert standing["b"].difference == pytest.approx(0.01)
    assert standing["b"].p_value == pytest.approx(2 / 2001)
    assert standing["c"].p_value == 1


def test_a_difference_within_the_noise_of_the_queries_is_a_tie() -> None:
    standing = compare_with_best({"a": QUERIES + noisy(1), "b": QUERIES + noisy(2) - 0.002}, QUICK)
    assert all(found.tied for found in standing.values())


def test_methods_are_compared_by_the_mean_of_their_seeds() -> None:
    seeds = np.stack([QUERIES - 0.02, QUERIES + 0.02])
    standing = compare_with_best({"two seeds": seeds, "one seed": QUERIES - 0.01}, QUICK)
    assert standing["two seeds"].mean == pytest.approx(QUERIES.mean())
    assert standing["two seeds"].standard_deviation == pytest.approx(np.std([-0.02, 0.02], ddof=1))
    assert (standing["two seeds"].seeds, standing["one seed"].seeds) == (2, 1)
    assert np.isnan(standing["one seed"].standard_deviation)
    assert not standing["one seed"].tied


def test_more_methods_make_it_harder_to_call_one_of_them_worse() -> None:
    close = QUERIES + noisy(3) - 0.007
    alone = compare_with_best({"best": QUERIES, "close": close}, QUICK)["close"]
    crowd = {"best": QUERIES, "close": close, **{f"{seed}": QUERIES + noisy(seed) - 0.004 for seed in range(9)}}
    among = compare_with_best(crowd, QUICK)["close"]
    assert among.adjusted_p_value > alone.adjusted_p_value


@settings(max_examples=20)
@given(st.integers(0, 2**31))
def test_the_best_is_tied_and_ahead_of_all_whatever_the_scores(seed: int) -> None:
    generator = np.random.default_rng(seed)
    scores = {f"{number}": generator.uniform(size=(generator.integers(1, 4), 12)) for number in range(4)}
    standing = compare_with_best(scores, SignificanceParameters(resamples=100), random_state=seed)
    best = max(standing.values(), key=lambda found: found.mean)
    assert best.tied
    assert best.difference == 0
    for found in standing.values():
        assert found.low <= found.high
        assert found.difference >= 0
        assert found.tied == (found.adjusted_p_value >= 0.05)


def test_the_same_seed_gives_the_same_answer() -> None:
    scores = {"a": [QUERIES, QUERIES - 0.01], "b": [QUERIES + noisy(1), QUERIES]}
    assert compare_with_best(scores, QUICK, 7) == compare_with_best(scores, QUICK, 7)


def test_queries_without_relevant_items_are_left_out() -> None:
    holes = np.append(QUERIES, np.nan)
    standing = compare_with_best({"a": holes, "b": holes - 0.01}, QUICK)
    assert standing["a"].mean == pytest.approx(QUERIES.mean())


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({}, "no method"),
        ({"a": QUERIES, "b": QUERIES[1:]}, "same queries"),
        ({"a": QUERIES, "b": np.append(QUERIES[1:], np.nan)}, "which queries have relevant items"),
        ({"a": np.full(3, np.nan)}, "no query has a relevant item"),
    ],
)
def test_what_cannot_be_compared_is_refused(scores: dict[str, NDArray[np.float64]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare_with_best(scores, QUICK)
