import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.embeddings import VectorIndex, building
from deephash_pipeline.embeddings.recall import MeasuredRecall
from deephash_pipeline.hamming.features import FeatureForm
from deephash_pipeline.retrieval import unpack_bits


def exact(queries, vectors, k):
    """The k nearest rows of each query by cosine."""
    unit, asked = (each / np.linalg.norm(each.astype(np.float64), axis=1, keepdims=True) for each in (vectors, queries))
    return np.argsort(-(asked @ unit.T), axis=1, kind="stable")[:, :k]


def recall(found, truth):
    return float(np.mean([len(np.intersect1d(*rows)) / len(rows[1]) for rows in zip(found, truth, strict=True)]))


@pytest.mark.parametrize("code_length", [1, 64, 65, 257, 1000, 4096])
def test_answers_without_rescoring_are_those_of_brute_force(folder, vectors, code_length):
    with VectorIndex.build(folder, vectors, code_length=code_length, method="rotation", rescore="none") as index:
        bits, asked = (unpack_bits(index.encode(each), code_length) for each in (vectors, vectors[:5]))
        distances = (bits[None] != asked[:, None]).sum(axis=2)
        answers = index.search(vectors[:5], 40)
    np.testing.assert_array_equal(answers.ids, np.argsort(distances, axis=1, kind="stable")[:, :40])
    assert answers.scores is None


@pytest.mark.parametrize(("rescore", "off"), [("float16", 1e-3), ("int8", 1e-2)])
def test_rescored_answers_are_in_the_order_of_the_cosine(folder, vectors, rescore, off):
    with VectorIndex.build(folder, vectors, code_length=64, rescore=rescore) as index:
        # More candidates than there are vectors.
        answers = index.search(vectors[:50], 10, recall=1)
        by_id = index.search_by_id(3, 9)
    truth = exact(vectors[:50], vectors, 10)
    assert recall(answers.ids, truth) > 0.97
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = np.take_along_axis(unit[:50] @ unit.T, answers.ids, axis=1)
    np.testing.assert_allclose(answers.scores, 1 - cosines, atol=off)
    assert (np.diff(answers.scores, axis=1) >= 0).all()
    assert recall(by_id.ids, truth[3:4, 1:]) >= 8 / 9 and 3 not in by_id.ids


def test_the_recall_that_is_told_is_that_of_other_queries(folder, vectors):
    generator = np.random.default_rng(5)
    queries = vectors[:300] + generator.normal(scale=0.3, size=(300, vectors.shape[1])).astype(np.float32)
    truth = exact(queries, vectors, 10)
    with VectorIndex.build(folder, vectors, code_length=24, recall=0.9) as index:
        sparing, thorough = index.expected(10, 0.6), index.expected(10)
        assert sparing.oversampling < thorough.oversampling
        assert 0.9 <= thorough.recall == index.description.measured.of[10][thorough.oversampling]
        for wanted, expected in ((0.6, sparing), (None, thorough)):
            found = recall(index.search(queries, 10, recall=wanted).ids, truth)
            assert found == pytest.approx(expected.recall, abs=0.06)


@pytest.mark.parametrize("kind", ["copies", "of other lengths", "with noise", "tags"])
def test_an_answer_of_the_cosine_of_an_exact_one_is_as_good_as_it(folder, vectors, kind):
    generator = np.random.default_rng(7)
    given = {
        "copies": lambda copies: copies,
        "of other lengths": lambda copies: copies * np.exp(generator.normal(size=(len(copies), 1))),
        "with noise": lambda copies: copies + 1e-6 * generator.normal(size=copies.shape),
        "tags": lambda copies: np.maximum(generator.random(copies.shape) < 0.2, np.eye(24)[np.arange(1500) % 24]),
    }[kind](np.tile(vectors[:60], (25, 1)))
    unit = given / np.linalg.norm(given, axis=1, keepdims=True)
    queries = np.arange(200)
    with VectorIndex.build(folder, given.astype(np.float32)) as index:
        expected, found = index.expected(10), index.search(given[queries], 10)
    cosines = unit[queries] @ unit.T
    tenth = -np.sort(-cosines, axis=1)[:, 9:10]
    true = np.mean(np.take_along_axis(cosines, found.ids, axis=1) >= tenth - 1e-6)
    assert expected.recall == pytest.approx(true, abs=0.02)
    assert kind == "tags" or expected == (1, 1.0)


@pytest.mark.parametrize("width", [24, 600])
def test_vectors_of_fewer_directions_than_bits_get_a_hash_function_that_needs_none(folder, vectors, width):
    padded = np.zeros((600, width), np.float32)
    padded[:, :24] = vectors
    with VectorIndex.build(folder, padded) as index:
        assert (index.description.method, index.description.code_length) == ("rotation", 512)


def test_a_number_of_answers_between_two_that_were_measured_takes_the_worse():
    measured = MeasuredRecall(target=0.9, queries=9, items=99, of={100: {1: 0.7, 2: 0.92}, 10: {2: 0.8, 10: 0.95}})
    assert [measured.expected(k) for k in (10, 50, 100)] == [(10, 0.95), (10, 0.92), (2, 0.92)]
    # More than most of them find, what is stored of the vectors does not allow.
    flat = MeasuredRecall(target=0.99, queries=9, items=99, of={10: {1: 0.7, 4: 0.95, 128: 0.95}})
    assert flat.expected(10) == (4, 0.95)
    # Of fewer or more, or under conditions, nothing is known.
    assert [measured.expected(k) for k in (1, 500)] == [(10, None)] * 2
    assert measured.expected(100, conditions=True) == (10, None)
    with pytest.raises(InputError, match="recall is -1: give a share"):
        measured.expected(10, recall=-1)


def test_an_index_is_added_to_removed_from_and_opened_again(folder, vectors):
    names = [f"paper {row}" for row in range(600)]
    years = {"year": [2000 + row % 20 for row in range(600)]}
    metadata = {"year": years["year"][:500]}
    with VectorIndex.build(folder, vectors[:500], names[:500], metadata=metadata, code_length=64) as index:
        index.add(vectors[500:], names[500:], {"year": years["year"][500:]})
        assert index.remove(names[:100]) == 100
        index.compact()
        found = index.search(vectors[100:110], 10, recall=1)
    truth = exact(vectors[100:110], vectors[100:], 10) + 100
    with VectorIndex.open(folder, read_only=True) as again:
        np.testing.assert_array_equal(again.search(vectors[100:110], 10, recall=1).ids, found.ids)
        assert recall(np.vectorize(names.index)(found.ids), truth) > 0.97
        early = again.search(vectors[100], 30, {"year": {"<": 2003}}).ids[0].tolist()
        assert len(early) == 30 and all(names.index(name) % 20 < 3 for name in early)


def test_blocks_make_the_index_that_one_block_makes(tmp_path, vectors, monkeypatch):
    found = []
    for name, numbers in (("whole", building.NUMBERS_AT_ONCE), ("blocks", 37 * vectors.shape[1])):
        monkeypatch.setattr(building, "NUMBERS_AT_ONCE", numbers)
        with VectorIndex.build(tmp_path / name, vectors, code_length=48) as index:
            found.append((index.search(vectors[:20], 10), index.description))
    np.testing.assert_array_equal(found[0][0].ids, found[1][0].ids)
    assert found[0][1] == found[1][1]


def test_a_supervised_hash_function_learns_from_labels(folder, vectors):
    labels = [f"class {row % 20}" for row in range(600)]
    with pytest.raises(InputError, match="itq_cca learns from labels"):
        VectorIndex.build(folder, vectors, method="itq_cca", code_length=16)
    with VectorIndex.build(folder, vectors, labels=labels, method="itq_cca", code_length=16) as index:
        found = index.search(vectors[:20], 10).ids % 20
        assert index.labels() == sorted(set(labels))
        only = index.search(vectors[0], 5, index.labelled(["class 7"]))
    assert np.mean(found == np.arange(20)[:, None]) > 0.8
    assert (only.ids % 20 == 7).all()


def broken(vectors, row, value):
    changed = vectors.copy()
    changed[row] = value
    return changed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda z: {"vectors": broken(z, 17, np.nan)}, "row 17 has a number that is not finite: mend"),
        (lambda z: {"vectors": broken(broken(z, 17, 0), 599, 0)}, "row 17 has zeros alone, and 1 rows after it"),
        (lambda z: {"vectors": z.astype(np.int64)}, "vectors is int64 of shape"),
        (lambda z: {"vectors": z[None]}, r"of shape \(1, 600, 24\)"),
        (lambda z: {"vectors": [[1, 2], [3]]}, "no table of numbers"),
        (lambda z: {"vectors": z, "ids": ["a"] * 600}, "ids has 'a' twice"),
        (lambda z: {"vectors": z, "ids": range(599)}, "599 ids for 600 vectors"),
        (lambda z: {"vectors": z, "labels": ["a"]}, "1 labels for 600 vectors"),
        (lambda z: {"vectors": z, "metadata": {"year": [1]}}, "'year' is not one value for each of 600"),
        (lambda z: {"vectors": z, "method": "magic"}, "hash function 'magic' is unknown: choose one of lsh"),
        (lambda z: {"vectors": z, "method": "sign", "code_length": 25}, "X has 24 features, and each bit takes one"),
        (lambda z: {"vectors": z, "rescore": "int4"}, "rescore is 'int4'"),
        (lambda z: {"vectors": z, "recall": 99}, "recall is 99"),
        (lambda z: {"vectors": "nowhere.npy"}, "nowhere.npy is not there"),
    ],
)
def test_what_cannot_be_indexed_is_named_and_leaves_nothing(tmp_path, vectors, arguments, message, monkeypatch):
    monkeypatch.setattr(building, "NUMBERS_AT_ONCE", 100 * vectors.shape[1])
    with pytest.raises(InputError, match=message) as caught:
        VectorIndex.build(tmp_path / "papers.index", **arguments(vectors))
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_an_index_is_replaced_only_when_asked_and_as_a_whole(folder, vectors):
    VectorIndex.build(folder, vectors, code_length=24).close()
    with pytest.raises(InputError, match="has an index: name another folder"):
        VectorIndex.build(folder, vectors[:300], code_length=24)
    with pytest.raises(InputError, match="not finite"):
        VectorIndex.build(folder, broken(vectors, 599, np.inf), code_length=24, anew=True)
    with VectorIndex.open(folder) as index:
        assert len(index) == 600
        with pytest.raises(InputError, match="is being written by process"):
            VectorIndex.build(folder, vectors[:300], code_length=24, anew=True)
    with VectorIndex.build(folder, vectors[:300], code_length=24, anew=True) as index:
        assert len(index) == 300
    assert [path.name for path in folder.parent.iterdir()] == ["papers.index"]


KILLED = """
import os, signal, sys
import numpy as np
from deephash_pipeline.embeddings import VectorIndex, building
building.measured_recall = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
VectorIndex.build(sys.argv[1], np.random.default_rng(0).normal(size=(5000, 8)), code_length=8)
"""


def test_a_build_that_is_killed_leaves_no_index_and_the_next_one_clears_up(folder, vectors):
    killed = subprocess.run([sys.executable, "-c", KILLED, folder], check=False, timeout=300)
    assert killed.returncode == -signal.SIGKILL and not folder.exists()
    with pytest.raises(InputError, match="is no index of vectors"):
        VectorIndex.open(folder)
    VectorIndex.build(folder, vectors, code_length=24).close()
    assert [path.name for path in folder.parent.iterdir()] == ["papers.index"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("hash_function.safetensors", "is damaged"), ("segments/*.z", "numbers long"), ("index.sqlite", "damaged")],
)
def test_a_damaged_file_is_noticed(folder, name, message):
    vectors = np.random.default_rng(0).normal(size=(5000, 8))
    VectorIndex.build(folder, vectors, code_length=8).close()
    [path] = folder.glob(name)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=message):
        VectorIndex.open(folder)
    if name.startswith("hash"):
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(InputError, match="not those that were written"):
            VectorIndex.open(folder)
        VectorIndex.build(folder.parent / "other", vectors, code_length=8, seed=1).close()
        path.write_bytes((folder.parent / "other" / path.name).read_bytes())
        with pytest.raises(InputError, match="is not what made the codes"):
            VectorIndex.open(folder)


def test_queries_of_another_width_are_refused(folder, vectors):
    with VectorIndex.build(folder, vectors, code_length=24) as index:
        with pytest.raises(InputError, match="queries have 23 numbers, this index has 24"):
            index.search(vectors[:, 1:], 3)
        with pytest.raises(InputError, match="queries is a masked array"):
            index.search(np.ma.masked_less(vectors, 0), 3)
        with pytest.raises(InputError, match="queries: row 1 has zeros alone"):
            index.search(broken(vectors[:2], 1, 0), 3)
        with pytest.raises(InputError, match="id 1000 is not in the index"):
            index.search_by_id(1000, 3)


def test_numbers_of_16_bits_are_divided_as_those_of_32(vectors):
    rows = np.arange(len(vectors))
    given = (100 * vectors).astype(np.float16)
    unit = building.unit_rows(given, "z", rows)
    np.testing.assert_array_equal(unit, building.unit_rows(given.astype(np.float32), "z", rows))


@given(arrays(np.float32, (3, 5), elements=st.floats(-1e3, 1e3, width=32)))
def test_int8_features_keep_length_and_nearly_the_direction(real):
    form, given_lengths = FeatureForm(5, "int8"), np.linalg.norm(real.astype(np.float64), axis=1)
    # Shorter ones are refused.
    assume(((given_lengths == 0) | (given_lengths >= 1e-18)).all())
    rows = form.stored(real)
    assert rows.shape == (3, form.columns) and rows.dtype == form.dtype
    lengths = np.linalg.norm(form.real(rows).astype(np.float64), axis=1)
    np.testing.assert_allclose(lengths, given_lengths, rtol=1e-5)
    peaks = np.abs(real).max(axis=1, keepdims=True)
    # Half a step of rounding, and what bringing the length back moves the largest numbers by.
    assert (np.abs(form.real(rows) - real) <= 0.02 * peaks + 1e-6).all()


@pytest.mark.parametrize("count", [2, 50, 30_000])
def test_recall_is_measured_with_rows_that_nothing_was_learned_from(count):
    held_out, learned = building._drawn(count, seed=3)
    assert len(learned) and not np.intersect1d(held_out, learned).size
