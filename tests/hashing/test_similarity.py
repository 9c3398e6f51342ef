"""Pairs of rows with several labels: drawn uniformly among those that share one, and among those that do not."""

import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing import ITQ, KSH, LDAH, MLH, LiongSDH
from deephash_pipeline.hashing.ksh import Similarity
from deephash_pipeline.hashing.ldah import draw_class_pairs
from deephash_pipeline.hashing.mlh import _PairSamplerOfSeveral
from deephash_pipeline.hashing.similarity import LabelSets, PartnerSampler
from deephash_pipeline.retrieval.labels import share_a_label

LABELS = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 0, 0]], dtype=np.int64)
SIMILAR = np.array([[bool((a & b).any()) for b in LABELS] for a in LABELS])


def test_sets_of_labels_are_similar_exactly_if_they_meet():
    sets = LabelSets.of(LABELS)
    np.testing.assert_array_equal(sets.similar[sets.of_row][:, sets.of_row], SIMILAR)
    np.testing.assert_array_equal(share_a_label(LABELS, LABELS), SIMILAR)


@pytest.mark.parametrize("similar", [True, False])
def test_partners_are_uniform_over_all_rows_of_the_kind(similar):
    sampler = PartnerSampler(LABELS)
    wanted = SIMILAR if similar else ~SIMILAR
    np.testing.assert_array_equal(sampler.partners_of_rows()[int(similar)], wanted.sum(axis=1))
    first = np.repeat(np.flatnonzero(wanted.any(axis=1)), 6000)
    partners = sampler.draw(first, similar, np.random.default_rng(0))
    for row in np.unique(first):
        drawn = np.bincount(partners[first == row], minlength=len(LABELS)) / 6000
        np.testing.assert_allclose(drawn, wanted[row] / wanted[row].sum(), atol=0.03)


def test_pairs_of_mlh_and_of_ldah_are_of_the_kinds_asked_for():
    kinds = np.tile(np.arange(10) < 5, (20, 1))
    pairs = _PairSamplerOfSeveral(LABELS).draw(kinds, np.random.default_rng(0))
    np.testing.assert_array_equal(SIMILAR[pairs[..., 0], pairs[..., 1]], kinds)
    positive, negative = draw_class_pairs(LABELS, 50, 60, np.random.default_rng(0))
    assert SIMILAR[positive[:, 0], positive[:, 1]].all()
    assert not SIMILAR[negative[:, 0], negative[:, 1]].any()
    assert (positive.shape, negative.shape) == ((50, 2), (60, 2))


def test_the_factors_of_ksh_give_the_matrix_of_pairs():
    similarity = Similarity(LABELS, code_length=4)
    wanted = 4 * (2.0 * SIMILAR - 1)
    np.testing.assert_allclose(np.stack([similarity.multiply(row) for row in np.eye(6)]), wanted, atol=1e-12)
    assert similarity.agreement(np.ones(6)) == pytest.approx(wanted.sum())


@pytest.mark.parametrize("method", [KSH, LDAH, MLH])
@pytest.mark.parametrize("labels", [np.arange(6), np.eye(6, dtype=np.uint8)], ids=["classes", "columns"])
def test_labels_that_no_two_rows_share_are_refused(method, labels):
    with pytest.raises(InputError, match=r"^(y names .* once|y names 6 classes, 1|y makes all pairs|no two of the 6)"):
        method(2).fit(np.random.default_rng(0).normal(size=(6, 4)), labels)


def test_faulty_columns_of_labels_are_refused_in_one_line():
    z = np.random.default_rng(0).normal(size=(6, 4))
    labels = LABELS.astype(np.uint8)
    with pytest.raises(InputError, match="LiongSDH: this method needs one label an image"):
        LiongSDH(2).fit(z, labels)
    with pytest.raises(InputError, match="give 0 and 1 for each of 6 rows"):
        KSH(2).fit(z, labels[:5])
    with pytest.raises(InputError, match="all rows of y are alike"):
        KSH(2).fit(z, np.ones((6, 2), dtype=np.uint8))
    with pytest.raises(InputError, match="makes all pairs of rows similar, or none"):
        PartnerSampler(np.array([[1, 0], [1, 1]]))
    assert ITQ(2).fit(z, labels).transform(z).shape == (6, 2)
