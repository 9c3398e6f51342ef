import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming import HammingIndex, store
from deephash_pipeline.hamming.id_columns import id_column
from deephash_pipeline.hamming.ranking import nearest_rows
from deephash_pipeline.retrieval.codes import code_words
from tests.hamming.brute_force import ListIndex, random_codes

QUERIES = 3


def check(index, expected, rng, text):
    queries = random_codes(rng, QUERIES, index.code_length)
    k, radius = int(rng.integers(1, 30)), int(rng.integers(0, index.code_length + 1))
    label = int(rng.integers(0, 3))
    answers, within = index.search(queries, k), index.within(queries, radius)
    filtered = index.search(queries, k, where={"label": label})
    compared = index.within(queries, radius, where={"label": {">=": 1}})
    for query in range(QUERIES):
        ranked = expected.ranked(queries[query])
        assert answers[query] == ranked[:k]
        assert within[query] == [answer for answer in ranked if answer[1] <= radius]
        assert filtered[query] == expected.ranked(queries[query], lambda item: item["label"] == label)[:k]
        over = expected.ranked(queries[query], lambda item: item["label"] >= 1)
        assert compared[query] == [answer for answer in over if answer[1] <= radius]
    assert len(index) == len(expected.items)
    assert list(index) == list(expected.items)
    for item in list(expected.items)[:3]:
        code, metadata = expected.items[item]
        assert item in index
        np.testing.assert_array_equal(index.get(item).code, code)
        assert index.get(item).metadata == metadata
        others = [answer for answer in expected.ranked(code) if answer[0] != item]
        assert index.search_by_id(item, k)[0] == others[:k]
    assert ("absent" if text else -1) not in index


@given(
    seed=st.integers(0, 2**32),
    code_length=st.one_of(st.integers(1, 64), st.sampled_from([65, 128, 200, 256, 1000, 4096])),
    text=st.booleans(),
    durable=st.booleans(),
    steps=st.lists(
        st.sampled_from(["add", "add", "add", "bulk", "replace", "remove", "compact", "reopen"]), max_size=8
    ),
)
@settings(max_examples=40, deadline=None)
def test_after_any_sequence_of_changes_answers_are_those_of_brute_force(
    tmp_path_factory, seed, code_length, text, durable, steps
):
    rng = np.random.default_rng(seed)
    folder = tmp_path_factory.mktemp("index") / "index"
    index = HammingIndex.create(folder, code_length) if durable else HammingIndex(code_length)
    reader = HammingIndex.open(folder, read_only=True) if durable else index
    expected, next_id = ListIndex(code_length), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "BULK_ITEMS", 100)
        patch.setattr(store, "TAIL_ITEMS", 60)
        patch.setattr(store, "MERGED_ITEMS", 200)
        index.add(["first"] if text else [-5], random_codes(rng, 1, code_length), {"label": [1]})
        expected.add(["first"] if text else [-5], index.get("first" if text else -5).code[None], {"label": [1]})
        for step in steps:
            if step in ("add", "bulk", "replace"):
                count = int(rng.integers(100, 160)) if step == "bulk" else int(rng.integers(0, 40))
                numbers = rng.permutation(np.arange(next_id, next_id + count)).tolist()
                next_id += count
                ids = [f"image {number}" for number in numbers] if text else numbers
                if step == "replace":
                    known = list(expected.items)
                    ids += [known[place] for place in rng.permutation(len(known))[:5]]
                codes = random_codes(rng, len(ids), code_length, different=20)
                metadata = {"label": rng.integers(0, 3, len(ids)).tolist()}
                index.add(ids, codes, metadata, replace=step == "replace")
                expected.add(ids, codes, metadata)
            elif step == "remove":
                known = list(expected.items)
                ids = [known[place] for place in rng.permutation(len(known))[: int(rng.integers(0, len(known) + 1))]]
                assert index.remove(ids) == len(ids)
                expected.remove(ids)
            elif step == "compact":
                index.compact()
            elif durable:
                index.close()
                index = HammingIndex.open(folder)
            check(index, expected, rng, text)
            check(reader, expected, rng, text)
    index.close()
    reader.close()


def test_a_tail_that_grows_long_becomes_a_segment():
    rng = np.random.default_rng(0)
    index, codes = HammingIndex(48), random_codes(rng, 20_000, 48)
    for start in range(0, 20_000, 2000):
        index.add(range(start, start + 2000), codes[start : start + 2000])
    assert index.info()["segments"] == 1
    assert index.search(codes[12_345:12_346], 1)[0] == [(12_345, 0)]


@pytest.mark.parametrize("text", [False, True])
def test_what_a_search_has_begun_to_read_stays_as_it_is_whatever_is_added_removed_and_merged(text):
    rng = np.random.default_rng(0)
    index, codes = HammingIndex(70, features=2), random_codes(rng, 9000, 70)
    features = rng.integers(-9, 9, (9000, 2))
    names = [f"image {row}" for row in range(9000)] if text else list(range(9000))
    for rows in (slice(0, 5000), slice(5000, 5003)):
        index.add(names[rows], codes[rows], features=features[rows])
    index.remove(names[1:2])
    before = index._store.current()
    kept = [0, *range(2, 5003)]
    for row in range(5003, 5300):
        index.add(names[row : row + 1], codes[row : row + 1], features=features[row : row + 1])
    index.add(names[5001:5002], codes[:1], features=features[:1], replace=True)
    index.remove(names[3:4])
    index.add(names[5300:], codes[5300:], features=features[5300:])
    index.compact()
    assert before.ids_of(before.rows()).tolist() == [names[row] for row in kept]
    np.testing.assert_array_equal(before.words_of(before.rows()), code_words(codes[kept]))
    np.testing.assert_array_equal(before.features_of(before.rows()), features[kept])
    rows, distances = nearest_rows(code_words(codes[5002:5003]), before.codes, 70, len(kept))
    assert rows[0, 0] == 5002 and sorted(rows[0].tolist()) == kept and not distances[0, 0]


@pytest.fixture
def index():
    index = HammingIndex(8)
    codes = np.array([[1], [3], [255]], dtype=np.uint8)
    index.add([1, 2, 3], codes, {"label": ["cat", "dog", None], "year": [2019, 2021, 2023]})
    return index


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({"label": "cat"}, [1]),
        ({"label": ["cat", "dog"]}, [1, 2]),
        ({"label": None}, [3, 4]),
        ({"label": [None, "dog"]}, [2, 3, 4]),
        ({"label": {"!=": None}}, [1, 2]),
        ({"year": {">": 2019, "<=": 2023}}, [2, 3]),
        ({"year": {">": 2019}, "label": "dog"}, [2]),
        ({"label": []}, []),
        ({}, [1, 2, 3, 4]),
        ({"LABEL": np.str_("cat")}, [1]),
        ({"label": {"!=": "cat"}}, [2, 3, 4]),
    ],
)
@pytest.mark.parametrize("asked_before", [True, False])
def test_conditions_on_metadata_of_which_items_added_without_have_no_value(index, where, ids, asked_before):
    if asked_before:
        assert sorted(index.search(zeros(1), 10, where=where).ids[0].tolist()) == [item for item in ids if item != 4]
    index.add([4], np.array([[7]], dtype=np.uint8))
    for _ in range(2):
        assert sorted(index.search(zeros(1), 10, where=where).ids[0].tolist()) == ids
    without = HammingIndex(8)
    without.add([1], zeros(1))
    assert without.search(zeros(1), 10, where={}).ids.tolist() == [[1]]


def test_a_condition_sees_what_was_added_and_removed_since_the_last_one_and_new_columns(index):
    query = np.zeros((1, 1), dtype=np.uint8)
    assert index.search(query, 5, where={"label": "cat"}).ids.tolist() == [[1]]
    index.add([7], query, {"label": ["cat"]})
    assert index.search(query, 5, where={"label": "cat"}).ids.tolist() == [[7, 1]]
    index.remove([1])
    assert index.search(query, 5, where={"label": "cat"}).ids.tolist() == [[7]]
    index.add([8], query, {"colour": ["red"]})
    assert index.search(query, 5, where={"colour": "red"}).ids.tolist() == [[8]]


def zeros(items, width=1):
    return np.zeros((items, width), dtype=np.uint8)


def test_an_item_is_read_as_often_as_it_is_named():
    index = HammingIndex(8)
    index.add(["a", "b"], np.array([[3], [5]], np.uint8), {"label": ["x", "y"]})
    assert [int(item.code[0]) for item in index.items(["b", "a", "b"])] == [5, 3, 5]
    assert index.metadata(["a", "a"]) == [{"label": "x"}] * 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda index: index.add([1], zeros(1)), "id 1 is in the index already"),
        (lambda index: index.add([5, 5], zeros(2)), "ids has 5 twice"),
        (lambda index: index.add(["a"], zeros(1)), "ids are strings, but this index has integers"),
        (lambda index: index.add([2**63], zeros(1)), "does not fit into 64 bits"),
        (lambda index: index.add([True], zeros(1)), "id True is bool"),
        (lambda index: index.add("ab", zeros(2)), "give a list of ids"),
        (lambda index: index.add([5, 6], zeros(1)), "2 ids for 1 codes"),
        (lambda index: index.add([5], zeros(1, 2)), "2 bytes per code"),
        (lambda index: index.add([5], zeros(1), {"label": ["a", "b"]}), "2 values for 1 items"),
        (lambda index: index.add([5], zeros(1), {"label": "a"}), "one value for each item"),
        (lambda index: index.add([5], zeros(1), {"position": [1]}), "a column 'position'"),
        (lambda index: index.add([5], zeros(1), {"a": [1], "A": [1]}), "capitals"),
        (lambda index: index.add([5], zeros(1), {str(name): [1] for name in range(1997)}), "would have 1999 columns"),
        (lambda index: index.add([5], zeros(1), {"label": [[1]]}), "has a value that is list"),
        (lambda index: index.add([5], zeros(1), features=np.zeros((1, 2))), "this index has none"),
        (lambda index: index.remove([1, 99]), "id 99 is not in the index"),
        (lambda index: index.get(99), "id 99 is not in the index"),
        (lambda index: index.search(zeros(1), 0), "k is 0"),
        (lambda index: index.search(zeros(1), 1.5), "k is 1.5"),
        (lambda index: index.within(zeros(1), -1), "radius is -1"),
        (lambda index: index.search(zeros(1), 1, where={"colour": 1}), "columns are: label, year"),
        (lambda index: index.search(zeros(1), 1, where={"year": {"~": 1}}), "use one of <"),
        (lambda index: index.search(zeros(1), 1, where={"label": 3}), "'label', which has text, with 3"),
        (lambda index: index.search(zeros(1), 1, where={"label": ["cat", 3]}), "'label', which has text, with 3"),
        (lambda index: index.search(zeros(1), 1, where={"label": {"!=": 3}}), "'label', which has text, with 3"),
        (lambda index: index.search(zeros(1), 1, where={"year": {">": "2"}}), "'year', which has numbers, with '2'"),
        (lambda index: index.search(zeros(1), 1, where={"year": {"<": None}}), "None after '<' for 'year'"),
        (lambda index: index.search(zeros(1), 1, where={"year": {"<": math.nan}}), "'year' has nan"),
        (lambda index: index.add([9], zeros(1), {"year": [math.nan]}), "'year' has nan for a value; give None"),
        (lambda index: index.add([9], zeros(1), {"label": ["\ud800"]}), "give one that UTF-8 can encode"),
        (lambda index: index.search(zeros(1), 1, where="year > 1"), "give a mapping"),
        (lambda index: index.search(zeros(1), 1, where={"label": {"!=": ["cat"]}}), "with the list ['cat']; give one"),
        (lambda index: index.search(zeros(1), 1, where={"label": {"in": "cat"}}), "'cat' after 'in' for 'label'; give"),
        (lambda index: index.search(zeros(1), 1, where={"year": {"prefix": 2}}), "2 after 'prefix' for 'year'; give a"),
        (lambda index: index.search(zeros(1), 1, where={"$or": {"year": 2}}), "after '$or'; give a list of conditions"),
        (lambda index: index.search(zeros(1), 1, where={"$not": 3}), "where is 3; give a mapping"),
        (lambda index: index.search(zeros(1), 1, where={"$id": ["a"]}), "ids are strings, but this index has integers"),
        (lambda index: index.search(zeros(1), 1, where=nested(60)), "conditions within conditions 50 deep"),
        (lambda index: index.add([9], zeros(1), {"label": ["\x1e"]}), "give a text that begins with another character"),
        (lambda index: HammingIndex(4097), "from 1 to 4096"),
        (lambda index: HammingIndex(8, features=-1), "features is -1"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(index, call, message):
    with pytest.raises(InputError) as error:
        call(index)
    assert message in str(error.value) and "\n" not in str(error.value)
    assert list(index) == [1, 2, 3]


def nested(depth):
    return {"$not": nested(depth - 1)} if depth else {"year": 2019}


def test_an_index_without_items_answers_nothing():
    index = HammingIndex(70)
    queries = zeros(2, 9)
    assert index.search(queries, 3)[1] == []
    assert index.within(queries, 70)[0] == []
    assert list(index) == []
    index.compact()
    index.add([1], zeros(1, 9))
    index.remove([1])
    index.compact()
    assert len(index.search(queries, 3).ids[0]) == 0
    assert index.info()["removed"] == 0


@pytest.mark.parametrize("read_only", [True, False])
def test_a_closed_index_answers_nothing(tmp_path, read_only):
    HammingIndex.create(tmp_path / "i", 8).close()
    index = HammingIndex.open(tmp_path / "i", read_only=read_only)
    index.close()
    for ask in (len, list, lambda closed: closed.search(np.zeros((1, 1), np.uint8), 1), lambda closed: 1 in closed):
        with pytest.raises(InputError, match="is closed; open it again"):
            ask(index)


def test_a_folder_in_use_or_without_an_index_is_refused(tmp_path):
    with pytest.raises(InputError, match="has no index"):
        HammingIndex.open(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not empty"):
        HammingIndex.create(tmp_path, 8)


def test_compacting_one_segment_forgets_what_was_removed():
    index = HammingIndex(48)
    index.add(range(5000), np.random.default_rng(0).integers(0, 256, (5000, 6), dtype=np.uint8))
    index.remove(range(100))
    index.compact()
    info = index.info()
    assert (info["items"], info["removed"], info["segments"]) == (4900, 0, 1)


def test_ids_in_any_order_are_found_though_their_ends_are_as_far_apart_as_they_are_many():
    assert id_column(np.array([10, 12, 11, 13])).find(np.array([10, 11, 12, 13])).tolist() == [0, 2, 1, 3]
