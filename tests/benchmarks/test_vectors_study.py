"""The comparison of indexes of vectors makes its vectors by a stated recipe, and finds with each what is there."""

import numpy as np
import pytest

pytest.importorskip("faiss")

from benchmarks.studies import vectors as study


def test_vectors_of_the_recipe_have_length_1_and_the_same_seed_gives_the_same():
    rows = study.recipe(300, 32)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(rows, study.recipe(300, 32))
    variances = rows.var(axis=0)
    assert variances[:4].mean() > 3 * variances[-4:].mean()


def test_an_index_finds_itself_adds_removes_and_keeps_a_condition(tmp_path):
    rows = study.recipe(600, 32)
    allowed = np.arange(600) % study.ONE_PERCENT == 0
    for effort, index in (
        (0.95, study.ours(rows, tmp_path / "a")),
        (1, study.of_faiss(rows, "Flat", None)),
        (8, study.of_faiss(rows, "IVF8,SQ8", "nprobe")),
    ):
        np.testing.assert_array_equal(index.search(rows[:5], effort, None)[:, 0], np.arange(5))
        found = index.search(rows[:2], effort, allowed)
        assert set(found[found >= 0].tolist()) <= set(np.flatnonzero(allowed).tolist())
        index.add(rows[:3])
        assert 600 in index.search(rows[:1], effort, None)
        index.remove(np.arange(600, 603))
        assert 600 not in index.search(rows[:1], effort, None)
        assert index.size() > 0


def test_recall_is_the_share_of_true_neighbours():
    assert study.recall(np.array([[1, 2, 9]]), np.array([[1, 2, 3]])) == pytest.approx(2 / 3)
