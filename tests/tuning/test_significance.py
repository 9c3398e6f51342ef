import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.tuning.significance import SignificanceParameters, compare_with_best

NAN = float("nan")


def verdicts(found):
    return [method.verdict for method in found]


def stepped_down(samples):
    """The clearest difference to the best by scipy's test of all pairs; then without that method, and so on."""
    left, p_values = list(range(len(samples))), np.ones(len(samples))
    best, former = max(left, key=lambda method: samples[method].mean()), 0.0
    while len(left) > 1:
        at_best = left.index(best)
        of_pairs = scipy.stats.tukey_hsd(*(samples[method] for method in left), equal_var=False).pvalue[at_best]
        clearest = min((place for place in range(len(left)) if place != at_best), key=lambda place: of_pairs[place])
        former = p_values[left[clearest]] = max(former, of_pairs[clearest])
        del left[clearest]
    return p_values


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31), st.lists(st.integers(2, 6), min_size=2, max_size=4))
def test_p_values_are_those_that_scipy_has_of_the_pairs_that_remain(seed, seeds):
    generator = np.random.default_rng(seed)
    samples = [generator.normal(generator.uniform(0, 4), generator.uniform(0.5, 2), size) for size in seeds]
    means = np.array([sample.mean() for sample in samples])
    found = compare_with_best(means, [sample.std(ddof=1) for sample in samples], seeds)
    assert [method.p_value for method in found] == pytest.approx(stepped_down(samples), abs=1e-7)
    for method, standing in enumerate(found):
        assert standing.difference == pytest.approx(means.max() - means[method])
        others = "worse" if standing.p_value < 0.05 else "tied"
        assert standing.verdict == ("best" if method == means.argmax() else others)


def test_one_seed_has_no_verdict_not_even_as_the_best_and_changes_none():
    among = compare_with_best([0.9, 0.95, 0.5, 0.91], [0.01, NAN, 0.01, 0.01], [3, 1, 3, 3])
    assert verdicts(among) == ["tied", None, "worse", "best"]
    assert among[1].difference == pytest.approx(-0.04)
    assert np.isnan(among[1].p_value)
    alone = compare_with_best([0.9, 0.5, 0.91], [0.01, 0.01, 0.01], [3, 3, 3])
    assert [among[0], among[2], among[3]] == alone


def test_without_several_methods_of_several_seeds_no_verdict_and_without_deviation_equal_means_alone_are_tied():
    assert verdicts(compare_with_best([0.9, 0.5], [0.01, NAN], [3, 1])) == [None, None]
    assert verdicts(compare_with_best([0.9, 0.9, 0.8], [0, 0, 0], [2, 2, 2])) == ["best", "tied", "worse"]
    with pytest.raises(InputError, match="no method"):
        compare_with_best([], [], [])


def test_the_level_decides():
    given_methods = ([0.9, 0.85], [0.01] * 2, [3] * 2)
    p_value = compare_with_best(*given_methods)[1].p_value
    for level, verdict in ((p_value * 1.01, "worse"), (p_value * 0.99, "tied")):
        assert compare_with_best(*given_methods, SignificanceParameters(level=level))[1].verdict == verdict
