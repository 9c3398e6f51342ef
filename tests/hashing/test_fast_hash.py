"""FastHash: graph cuts against all combinations of bits, boosting against scikit-learn's."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing import FastHash
from deephash_pipeline.hashing.fast_hash import boosted_trees
from deephash_pipeline.hashing.fast_hash.block_graph_cut import SimilarPairs, blocks_of, cut, draw_pairs, infer_bits
from deephash_pipeline.hashing.fast_hash.boosted_trees import (
    EnsembleSize,
    add_votes,
    boost,
    lay_out,
    without_the_smallest,
)
from deephash_pipeline.hashing.fast_hash.fast_hash import weights_of_pairs

SEED = st.integers(0, 2**32)


def symmetric(generator, size, low, high):
    upper = np.triu(generator.integers(low, high, (size, size), endpoint=True), 1)
    return upper + upper.T


@settings(max_examples=60, deadline=None)
@given(SEED, st.integers(1, 7))
def test_a_cut_is_the_best_of_all_combinations_of_bits_and_the_one_with_the_fewest_ones(seed, size):
    generator = np.random.default_rng(seed)
    weights, pulls = symmetric(generator, size, -3, 0), generator.integers(-6, 6, size, endpoint=True)

    def cost(bits):
        return int(bits @ weights @ bits // 2 + pulls @ bits)

    every = [np.array(bits) for bits in itertools.product((-1, 1), repeat=size)]
    best = min(every, key=lambda bits: (cost(bits), bits.sum()))
    np.testing.assert_array_equal(cut(csr_matrix(weights), pulls), best)


@settings(max_examples=8, deadline=None)
@given(SEED)
def test_no_pass_over_the_blocks_raises_the_sum_and_no_block_alone_can_lower_it(seed):
    labels = np.arange(12) % 3
    weights = symmetric(np.random.default_rng(seed), 12, 0, 5)
    weights[np.equal.outer(labels, labels)] *= -1
    blocks = blocks_of(labels, np.random.default_rng(0))
    values, bits = [weights.sum()], np.ones(12, np.int64)
    for passes in (1, 2, 20):
        bits = infer_bits(csr_matrix(weights), blocks, passes, np.random.default_rng(1))
        values.append(bits @ weights @ bits)
    assert values == sorted(values, reverse=True)
    for block, of_block in itertools.product(blocks, itertools.product((-1, 1), repeat=4)):
        changed = bits.copy()
        changed[block] = of_block
        assert changed @ weights @ changed >= values[-1]


@pytest.mark.parametrize("bit", [1, 2, 5, 8])
def test_weights_of_pairs_are_the_hinge_losses_of_an_equal_bit_less_those_of_another(bit):
    def loss(distance, similar):
        return (distance / bit) ** 2 if similar else max(0.5 - distance / bit, 0) ** 2

    pairs = list(itertools.product(range(bit), (True, False)))
    expected = [4 * bit**2 * (loss(distance, similar) - loss(distance + 1, similar)) for distance, similar in pairs]
    distances, similar = (np.array(part) for part in zip(*pairs, strict=True))
    np.testing.assert_allclose(weights_of_pairs(distances, similar, bit), expected, atol=1e-9)


def test_every_row_has_so_many_partners_of_each_kind_or_all_there_are():
    labels = np.repeat([0, 1, 2], [30, 3, 1])
    pairs = draw_pairs(labels, 5, np.random.default_rng(0))
    assert (pairs.first < pairs.second).all()
    assert len(np.unique(pairs.first * 34 + pairs.second)) == len(pairs.first)
    np.testing.assert_array_equal(pairs.similar, labels[pairs.first] == labels[pairs.second])
    for kind, available in ((True, [29, 2, 0]), (False, [4, 31, 33])):
        ends = np.concatenate([part[pairs.similar == kind] for part in pairs[:2]])
        assert (np.bincount(ends, minlength=34) >= np.minimum(5, np.array(available)[labels])).all()


def test_the_weight_of_a_pair_stands_on_both_sides_of_the_diagonal():
    pairs = SimilarPairs(np.array([0, 1]), np.array([2, 2]), np.array([True, False]))
    np.testing.assert_array_equal(pairs.matrix(np.array([-4, 7]), 3).toarray(), [[0, 0, -4], [0, 0, 7], [-4, 7, 0]])


def test_rows_of_a_block_share_a_label_and_every_row_has_a_block(monkeypatch):
    monkeypatch.setattr("deephash_pipeline.hashing.fast_hash.block_graph_cut.LARGEST_BLOCK", 4)
    generator = np.random.default_rng(0)
    several = generator.integers(0, 2, (40, 3))
    assert not several.any(axis=1).all()
    for labels in (generator.integers(0, 3, 40), several):
        blocks = blocks_of(labels, generator)
        assert sorted(set(np.concatenate(blocks))) == list(range(40))
        assert max(map(len, blocks)) == 4
        for block in blocks:
            own = labels[block]
            assert len(block) == 1 or (own.all(axis=0).any() if own.ndim == 2 else len(set(own)) == 1)


def data(rows=200):
    generator = np.random.default_rng(3)
    z = generator.normal(size=(rows, 5)).astype(np.float32)
    return z, np.where(z[:, 0] * z[:, 1] + 0.5 * generator.normal(size=rows) > 0, 1, -1)


def test_a_tree_laid_out_says_what_scikit_learns_says():
    z, bits = data()
    for depth in (1, 3, 6):
        tree = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=5, random_state=0).fit(z, bits)
        feature, value = np.zeros((1, 1, 2 ** (depth + 1) - 1), np.int32), np.zeros((1, 1, 2 ** (depth + 1) - 1))
        lay_out(tree, 1.0, feature[0, 0], value[0, 0])
        np.testing.assert_array_equal(add_votes(z, feature, value)[:, 0], tree.predict(z))


def test_boosting_with_all_rows_and_features_is_adaboost(monkeypatch):
    monkeypatch.setattr(boosted_trees, "KEPT_WEIGHT", 1.0)
    z, bits = data()
    weights = np.random.default_rng(4).random(len(z))
    ours = boost(z, bits, weights, EnsembleSize(12, 2, 5), np.random.default_rng(0))
    stump = DecisionTreeClassifier(max_depth=2)
    theirs = AdaBoostClassifier(stump, n_estimators=12, random_state=0).fit(z, bits, weights / weights.sum())
    votes = add_votes(z, ours.feature[np.newaxis], ours.value[np.newaxis])[:, 0]
    # Scaled by the weights, which are twice the votes; and the difference of two classes' scores is twice that.
    np.testing.assert_allclose(4 * votes / theirs.estimator_weights_.sum(), theirs.decision_function(z), atol=1e-9)


def test_a_perfect_tree_is_the_last_and_one_class_needs_no_second():
    z, _ = data()
    for bits in (np.where(z[:, 0] > 0, 1, -1), np.ones(len(z), np.int64), -np.ones(len(z), np.int64)):
        ensemble = boost(z, bits, np.zeros(len(z)), EnsembleSize(4, 2, 5), np.random.default_rng(0))
        assert ensemble.value[0].any() and not ensemble.value[1:].any()
        assert ensemble.splits[0] == len(set(bits)) - 1
        np.testing.assert_array_equal(add_votes(z, ensemble.feature[None], ensemble.value[None])[:, 0] > 0, bits > 0)


def test_the_smallest_weights_are_left_out_up_to_a_hundredth_of_all():
    weights = np.array([50.0, 0.4, 0.5, 48.6, 0.5])
    assert without_the_smallest(weights).tolist() == [50.0, 0.0, 0.0, 48.6, 0.5]


def test_a_bit_adds_to_those_that_the_trees_say(z, labels):
    shorter, longer = (FastHash(bits, trees=3, partners=20).fit(z, labels).transform(z) for bits in (4, 6))
    np.testing.assert_array_equal(longer[:, :4], shorter)
    assert len(np.unique(longer, axis=1).T) == 6


def test_features_that_no_tree_can_split_are_refused(z, labels):
    with pytest.raises(InputError, match=r"^X differs too little for trees, .* scale the features up"):
        FastHash(2, trees=2).fit(z * 1e-9, labels)


def test_rows_of_several_labels_are_near_to_those_that_share_one():
    generator = np.random.default_rng(0)
    several = np.eye(4, dtype=np.uint8)[generator.integers(0, 4, 200)] | (generator.random((200, 4)) < 0.1)
    z = (several @ generator.normal(size=(4, 10)) + 0.3 * generator.normal(size=(200, 10))).astype(np.float32)
    codes = FastHash(16, trees=10).fit(z, several).transform(z)
    distance = (codes[:, np.newaxis] != codes).sum(axis=2)
    similar = several.astype(int) @ several.T > 0
    assert distance[similar].mean() + 3 < distance[~similar].mean()
