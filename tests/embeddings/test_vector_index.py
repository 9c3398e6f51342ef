import signal
import subprocess
import sys
from fractions import Fraction
from itertools import product
from uuid import UUID

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.embeddings import VectorIndex, building
from deephash_pipeline.embeddings.coder import LINEAR, Coder
from deephash_pipeline.embeddings.recall import MeasuredRecall, _steps
from deephash_pipeline.hamming.features import FeatureForm
from deephash_pipeline.hashing import ENCODERS, load_encoder
from deephash_pipeline.retrieval import unpack_bits


def exact(queries, vectors, k):
    """The k nearest rows of each query by cosine."""
    unit, asked = (each / np.linalg.norm(each.astype(np.float64), axis=1, keepdims=True) for each in (vectors, queries))
    return np.argsort(-(asked @ unit.T), axis=1, kind="stable")[:, :k]


def recall(found, truth):
    return float(np.mean([len(np.intersect1d(*rows)) / len(rows[1]) for rows in zip(found, truth, strict=True)]))


@pytest.mark.parametrize("code_length", [1, 64, 65, 257, 1000, 4096])
def test_answers_without_kept_vectors_are_those_of_brute_force(folder, vectors, code_length):
    with VectorIndex.build(folder, vectors, code_length=code_length, method="rotation", rescore="none") as index:
        bits, asked = (unpack_bits(index.encode(each), code_length) for each in (vectors, vectors[:5]))
        answers = index.search(vectors[:5], 40)
        shortlist = 40 * index.expected(40).oversampling
        by_id = index.search_by_id(3, 40)
        unit = vectors[:5] / np.linalg.norm(vectors[:5].astype(np.float64), axis=1, keepdims=True)
        outputs = index.coder.encoder.outputs(unit)
    differ = bits[None] != asked[:, None]
    distances = differ.sum(axis=2)
    by_distance = np.argsort(distances, axis=1, kind="stable")
    assert by_id.ids[0].tolist() == [row for row in by_distance[3].tolist() if row != 3][:40]
    # What the query's outputs would have to change to give the bits.
    costs = np.einsum("qnk,qk->qn", differ, np.abs(outputs))
    best = np.sort(np.take_along_axis(costs, by_distance[:, :shortlist], axis=1), axis=1)[:, :40]
    np.testing.assert_allclose(np.take_along_axis(costs, answers.ids, axis=1), best, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(answers.distances, np.take_along_axis(distances, answers.ids, axis=1))
    assert answers.scores is None and [pair[1] for pair in answers[0]] == [None] * 40


@pytest.mark.parametrize("rescore", ["int8", "float16", "none"])
@pytest.mark.parametrize("count", [2, 3, 499])
def test_an_index_of_few_vectors_is_made_though_its_recall_is_not_measured(vectors, count, rescore):
    with VectorIndex.build(None, vectors[:count], rescore=rescore) as index:
        assert index.search(vectors[0], 1).ids.tolist() == [[0]]


def test_directions_are_not_the_vectors_that_were_drawn_from_the_same_seed():
    drawn = np.random.default_rng(0).standard_normal((500, 16)).astype(np.float32)
    with VectorIndex.build(None, drawn, method="lsh", code_length=16, rescore="none") as index:
        directions = index.coder.arrays()["projection"].T
    assert np.abs(np.corrcoef(directions, drawn[:16])[:16, 16:]).max() < 0.95


@pytest.mark.parametrize("method", [name for name, kind in ENCODERS.items() if set(kind.stored) == LINEAR])
def test_a_coder_makes_the_bits_of_its_hash_function(vectors, method):
    unit = building.unit_rows(vectors, "z", np.arange(len(vectors)))
    # Columns of zeros, and rows on the hyperplanes themselves, of which the sign is that of a sum in float64.
    projection = np.random.default_rng(2).normal(size=(24, 40)).astype(np.float32)
    projection[:, 0] = 0
    threshold = (unit[:40].astype(np.float64) * projection.T).sum(axis=1)
    arrays = {"projection": projection, "threshold": threshold}
    encoder = load_encoder(method, 40, arrays)
    coder = Coder(method, 40, arrays)
    outputs = encoder.outputs(unit)
    sure = np.abs(outputs) > 1e-14
    differ = unpack_bits(coder.codes(unit), 40) != encoder.transform(unit)
    assert not (differ & sure).any() and not differ[:, 0].any()
    np.testing.assert_allclose(coder.outputs(unit), outputs, atol=1e-5)
    with pytest.raises(InputError, match="are not of 40 bits"):
        Coder(method, 40, {"projection": projection, "threshold": threshold[:-1]})


def test_a_search_by_a_linear_hash_function_imports_no_scikit_learn(folder, vectors):
    VectorIndex.build(folder, vectors, code_length=16).close()
    program = (
        "import sys; from deephash_pipeline.embeddings import VectorIndex\n"
        f"index = VectorIndex.open({str(folder)!r}, read_only=True)\n"
        "index.search_by_id(3, 2), index.search(index.get(3).vector, 2)\n"
        "print(sorted({'sklearn', 'torch', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("count", [2, 60, 101])
def test_recall_of_few_vectors_is_measured_with_queries_that_are_given(vectors, count):
    with VectorIndex.build(None, vectors[:count], code_length=8, queries=vectors[200:300]) as index:
        measured = index.description.measured.of
    assert all(list(found.values())[-1] > 0.9 for found in measured.values()), measured


def test_up_to_all_others_are_measured_as_candidates():
    assert _steps(10, 500) == [*range(1, 8), 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56]
    assert _steps(100, 60) == [1]


def test_an_index_in_memory_answers_as_one_in_a_folder(folder, vectors):
    made = {"metadata": {"row": list(range(600))}, "code_length": 48}
    in_memory = VectorIndex.build(None, vectors, **made)
    with VectorIndex.build(folder, vectors, **made) as index:
        for each in (index, in_memory):
            each.add(vectors[:3] + 1, metadata={"row": [600, 601, 602]})
            each.remove([4])
        found = [each.search(vectors[:20], 10, {"row": {"!=": 9}}) for each in (index, in_memory)]
        assert index.description == in_memory.description
    np.testing.assert_array_equal(found[0].ids, found[1].ids)
    np.testing.assert_array_equal(found[0].scores, found[1].scores)


def test_what_is_kept_of_an_item_is_given_back_and_its_metadata_changed(folder, vectors):
    with VectorIndex.build(folder, vectors, metadata={"Year": list(range(600))}, rescore="float16") as index:
        unit = vectors[7] / np.linalg.norm(vectors[7])
        np.testing.assert_allclose(index.get(7).vector, unit, atol=1e-3)
        before, answers = index.get(7), index.search(vectors[7], 5)
        index.update([7, 3], {"year": [None, 1999], "seen": ["yes", "no"]})
        assert (before.metadata, index.get(7).metadata) == ({"Year": 7}, {"seen": "yes"})
        assert index.search(vectors[3], 1, {"year": 1999}).ids.tolist() == [[3]]
        np.testing.assert_array_equal(index.get(7).vector, before.vector)
        again = index.search(vectors[7], 5)
        np.testing.assert_array_equal(again.ids, answers.ids)
        np.testing.assert_array_equal(again.scores, answers.scores)
        for ids, message in (([7, 1000], "1000 is not in the index"), ([7, 7], "7 twice")):
            with pytest.raises(InputError, match=message):
                index.update(ids, {"seen": ["a", "b"]})
    with VectorIndex.open(folder, read_only=True) as again:
        assert again.get(3).metadata == {"Year": 1999, "seen": "no"} and len(again) == 600


def test_rows_that_are_added_are_numbered_on(folder, vectors):
    with VectorIndex.build(folder, vectors[:500], code_length=24) as index:
        index.remove([499])
        index.add(vectors[500:502])
        # The id of an item that was removed is not given to another.
        assert index.ids()[-3:].tolist() == [498, 500, 501]
        index.add(vectors[502], [10_000])
        index.add(vectors[503:])
        assert index.ids()[-2:].tolist() == [10_096, 10_097] and index.ids()[502] == 10_001
    texts = VectorIndex.build(None, vectors, [f"{row}" for row in range(600)], code_length=24)
    with pytest.raises(InputError, match="those of this index are strings; give one for each"):
        texts.add(vectors[:2])


def test_ids_may_be_uuids(vectors):
    ids = [UUID(int=row) for row in range(600)]
    index = VectorIndex.build(None, vectors, ids, code_length=24)
    assert index.search(vectors[9], 1).ids.tolist() == [[str(ids[9])]] and index.get(ids[9]).id == str(ids[9])
    assert index.search_by_id(ids[9], 3).ids[0, 0] != str(ids[9])
    assert index.remove(ids[:2]) == 2


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
    np.testing.assert_allclose(answers.scores, cosines, atol=off)
    assert (np.diff(answers.scores, axis=1) <= 0).all()
    pairs = [pair for of_query in answers for pair in of_query]
    assert pairs == [*zip(answers.ids.ravel().tolist(), answers.scores.ravel().tolist(), strict=True)]
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


def test_a_number_of_answers_between_two_that_were_measured_takes_the_candidates_of_the_more_costly():
    measured = MeasuredRecall(target=0.9, queries=9, items=99, of={100: {1: 0.7, 2: 0.92}, 10: {2: 0.8, 10: 0.95}})
    assert [measured.expected(k) for k in (10, 50, 100)] == [(10, 0.95), (4, 0.92), (2, 0.92)]
    # More than most of them find, what is stored of the vectors does not allow.
    flat = MeasuredRecall(target=0.99, queries=9, items=99, of={10: {1: 0.7, 4: 0.95, 128: 0.95}})
    assert flat.expected(10) == (4, 0.95)
    nearly = MeasuredRecall(target=0.99, queries=9, items=99, of={1: {1: 0.7, 8: 0.9695, 16: 0.97}})
    assert nearly.expected(1) == (8, 0.9695) and nearly.expected(1, recall=0.97) == (16, 0.97)
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
    for name, numbers in (("whole", building.NUMBERS_OF_A_FIT), ("blocks", 37 * vectors.shape[1])):
        monkeypatch.setattr(building, "NUMBERS_OF_A_FIT", numbers)
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
    monkeypatch.setattr(building, "NUMBERS_OF_A_FIT", 100 * vectors.shape[1])
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


@pytest.mark.parametrize(
    ("kind", "largest"),
    [*product([np.float32, ">f4", np.float64], [1, 1e-38, 1e38]), *product([np.float64], [5e-323, 1e-200, 1e308])],
)
def test_vectors_of_any_length_and_layout_get_length_1(kind, largest):
    rows = np.asfortranarray(np.random.default_rng(0).integers(-9, 9, (6, 5)) * (largest / 9), dtype=kind)
    rows = rows[rows.any(axis=1)]
    rows.flags.writeable = False
    exact = [[Fraction(float(number)) / max(abs(Fraction(float(n))) for n in row) for number in row] for row in rows]
    wanted = np.array(exact, dtype=np.float64)
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    np.testing.assert_allclose(building.unit_rows(rows, "z"), wanted, rtol=1e-6, atol=1e-7)


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
