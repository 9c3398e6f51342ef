"""The comparison of indexes of vectors makes its vectors by a stated recipe, and finds with each what is there."""

import numpy as np
import pytest

pytest.importorskip("faiss")

import faiss

from benchmarks.studies import vectors as study


@pytest.fixture(autouse=True)
def _search_of_faiss_itself(monkeypatch):
    """pytorch-metric-learning, which other tests import, gives faiss a search of tensors that drops its parameters."""
    for kind in vars(faiss).values():
        if "search_numpy" in getattr(kind, "__dict__", {}):
            monkeypatch.setattr(kind, "search", kind.search_numpy)


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


def test_an_index_is_tuned_by_the_least_effort_that_reaches_a_goal(tmp_path):
    assert study.least_effort([(0.5, 1), (0.96, 2), (0.99, 4)], 0.95) == 2
    assert study.least_effort([(0.5, 1)], 0.95) == 0
    rows = study.recipe(600, 32)
    truth = study.of_faiss(rows, "Flat", None).search(rows[:50], 1, None)
    reached = study.tune(study.of_faiss(rows, "IVF8,Flat", "nprobe"), (1, 8, 16), rows[:50], truth)
    assert reached[-1] == (1, 8) and reached[0][0] < 0.99


def test_every_index_of_the_table_has_all_its_columns(monkeypatch):
    monkeypatch.setattr(study, "CHANGED", 50)
    monkeypatch.setattr(study, "ROUNDS", 1)
    monkeypatch.setattr(study, "SINGLES", 20)
    rows = study.recipe(3050, 32)
    table = study.measure(rows[:-50], rows[-50:], WANTED, ["usearch"])
    assert [row["index"] for row in table] == list(WANTED)
    assert len({tuple(row) for row in table}) == 1 and "MiB" in table[0]
    assert table[1]["0.99, single"] != "never" and table[1]["1 %"] != "never"


WANTED = ("ours, default", "faiss Flat")
