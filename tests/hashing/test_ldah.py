from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eig

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing.ldah import LDAH, best_threshold, draw_class_pairs

LABELS = np.arange(300) % 5
FEW_PAIRS = {"positive_pairs": 2000, "negative_pairs": 1500}


@pytest.fixture(scope="module")
def z():
    """300 rows of 12 correlated features of unequal variance around 5 class means, off the origin."""
    generator = np.random.default_rng(11)
    mixing = np.linalg.qr(generator.normal(size=(12, 12)))[0] * np.linspace(2.0, 0.2, 12)[:, np.newaxis]
    return (generator.normal(size=(5, 12))[LABELS] + generator.normal(size=(300, 12))) @ mixing + 1.0


def slow_cost(threshold, positive, negative):
    """FN + FP: the share of positive pairs that a threshold splits, and that of negative pairs that it does not."""
    split_positive = sum((a >= threshold) != (b >= threshold) for a, b in positive)
    whole_negative = sum((a >= threshold) == (b >= threshold) for a, b in negative)
    return split_positive / len(positive) + whole_negative / len(negative)


def slow_moment(z, pairs):
    total = np.zeros((z.shape[1], z.shape[1]))
    for first, second in pairs:
        total += np.outer(z[first] - z[second], z[first] - z[second])
    return total / len(pairs)


def test_directions_solve_the_generalized_eigenproblem_of_the_pairs(z):
    positive, negative = draw_class_pairs(LABELS, **FEW_PAIRS, generator=np.random.default_rng(4))
    moment_positive, moment_negative = slow_moment(z, positive), slow_moment(z, negative)
    eigenvalues, vectors = eig(moment_positive, moment_negative)
    smallest = np.argsort(eigenvalues.real)[:6]
    hash_function = LDAH(6, random_state=4, **FEW_PAIRS).fit(z, LABELS)
    np.testing.assert_allclose(hash_function.eigenvalue_, eigenvalues.real[smallest], rtol=1e-3)
    learned = hash_function.projection_ / np.linalg.norm(hash_function.projection_, axis=0)
    cosines = np.abs((learned * vectors.real[:, smallest]).sum(axis=0))
    np.testing.assert_allclose(cosines, 1.0, atol=1e-4)


def test_no_threshold_treats_fewer_pairs_wrongly(z):
    positive, negative = draw_class_pairs(LABELS, **FEW_PAIRS, generator=np.random.default_rng(4))
    hash_function = LDAH(3, random_state=4, **FEW_PAIRS).fit(z, LABELS)
    codes = hash_function.transform(z)
    for bit, projected in zip(codes.T, (z @ hash_function.projection_).T, strict=True):
        wrong = slow_cost(0.5, bit[positive], bit[negative])
        # Every tenth place for a cut: all of them would take ten times as long.
        cuts = np.sort(projected)[::10] - 1e-9
        assert wrong <= min(slow_cost(cut, projected[positive], projected[negative]) for cut in cuts) + 1e-12


pairs_with_ties = st.lists(st.tuples(st.integers(-6, 6), st.integers(-6, 6)), min_size=1, max_size=12)


@settings(max_examples=300, deadline=None)
@given(positive=pairs_with_ties, negative=pairs_with_ties)
def test_the_threshold_search_equals_brute_force(positive, negative):
    exact_positive, exact_negative = np.array(positive, dtype=np.float64), np.array(negative, dtype=np.float64)
    found = slow_cost(best_threshold(exact_positive, exact_negative), exact_positive, exact_negative)
    everywhere = [slow_cost(half / 2, exact_positive, exact_negative) for half in range(-14, 15)]
    assert found == pytest.approx(min(everywhere), abs=1e-12)


def test_the_threshold_lies_half_way_between_classes_that_it_can_part():
    assert best_threshold(np.array([[0.0, 1.0], [5.0, 6.0]]), np.array([[1.0, 5.0], [0.0, 6.0]])) == 3.0


def test_pairs_are_uniform_over_all_that_exist():
    labels = np.array([7, 3, 3, 9, 7, 3])
    drawn = draw_class_pairs(labels, 40_000, 110_000, np.random.default_rng(2))
    # 4 pairs of one class and 11 of two, each drawn 10,000 times but for a deviation of about 100.
    for pairs, same in zip(drawn, (True, False), strict=True):
        found, counts = np.unique(np.sort(pairs, axis=1), axis=0, return_counts=True)
        expected = [pair for pair in combinations(range(6), 2) if (labels[pair[0]] == labels[pair[1]]) == same]
        assert [tuple(pair) for pair in found] == expected
        np.testing.assert_allclose(counts, 10_000, atol=600)


def test_features_that_say_nothing_new_change_no_code(z):
    padded = np.concatenate([z, np.zeros((300, 3)), np.full((300, 1), 7.0), z[:, :2] - z[:, 2:4]], axis=1)
    plain, with_more = LDAH(4, **FEW_PAIRS).fit(z, LABELS), LDAH(4, **FEW_PAIRS).fit(padded, LABELS)
    np.testing.assert_allclose(with_more.eigenvalue_, plain.eigenvalue_, rtol=1e-3)
    different = (with_more.transform(padded) != plain.transform(z)).mean(axis=0)
    assert (np.minimum(different, 1 - different) < 0.02).all()


def test_features_of_hardly_any_variance_are_not_taken_for_the_best(z):
    noise = 1e-5 * np.random.default_rng(1).normal(size=(300, 3))
    eigenvalues = LDAH(15, **FEW_PAIRS).fit(np.concatenate([z, noise], axis=1), LABELS).eigenvalue_
    np.testing.assert_allclose(eigenvalues[:4], LDAH(4, **FEW_PAIRS).fit(z, LABELS).eigenvalue_, rtol=1e-2)


def test_features_are_first_reduced_to_their_principal_components(z):
    centred = z - z.mean(axis=0)
    components = centred @ np.linalg.svd(centred)[2][:6].T
    reduced = LDAH(5, principal_components=6, **FEW_PAIRS).fit(z, LABELS)
    np.testing.assert_allclose(reduced.eigenvalue_, LDAH(5, **FEW_PAIRS).fit(components, LABELS).eigenvalue_, rtol=1e-6)
    assert reduced.eigenvalue_[0] > LDAH(5, **FEW_PAIRS).fit(z, LABELS).eigenvalue_[0]


def test_more_bits_than_directions_are_refused(z):
    with pytest.raises(InputError, match=r"^code_length is 13, but X of shape \(300, 12\) gives 12 directions"):
        LDAH(13, **FEW_PAIRS).fit(z, LABELS)
    with pytest.raises(InputError, match=r"gives 6 directions \(principal_components is 6\).*raise principal_comp"):
        LDAH(7, principal_components=6, **FEW_PAIRS).fit(z, LABELS)
