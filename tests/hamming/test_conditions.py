"""Conditions on metadata, against a look at each item."""

import operator
import shutil
from datetime import UTC, date, datetime, time, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import temporary_name
from deephash_pipeline.hamming import HammingIndex, column_files, index
from deephash_pipeline.hamming.columns import _joined, column_part
from deephash_pipeline.hamming.database import digest_of, digests_of
from deephash_pipeline.hamming.index_folder import delete_index
from deephash_pipeline.hamming.ledger import Ledger

CODE = np.zeros((1, 1), dtype=np.uint8)
NUMBERS = st.sampled_from([-1, 0, 1, 2, 2.5, 2**53, 2**53 + 1, float(2**53), float("inf"), -0.0, True, False])
TEXTS = st.sampled_from(["", "a", "ab", "abc", "b", "\N{LATIN SMALL LETTER E WITH ACUTE}", "\U0010ffff"])
TAGS = st.lists(TEXTS, max_size=3)
VALUES = st.none() | NUMBERS | TEXTS | st.just(b"a") | TAGS
COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def kind(value):
    return "text" if isinstance(value, str) else "bytes" if isinstance(value, bytes) else "numbers"


def equals(value, wanted):
    if isinstance(value, list):
        return wanted in value
    return value == wanted and (value is None or kind(value) == kind(wanted))


def holds(item, name, where):
    """The slow way: one item, one condition after another."""
    for column, wanted in where.items():
        value = item.get(column)
        if column == "$or":
            found = any(holds(item, name, each) for each in wanted)
        elif column == "$and":
            found = all(holds(item, name, each) for each in wanted)
        elif column == "$not":
            found = not holds(item, name, wanted)
        elif column == "$id":
            found = name in wanted
        elif isinstance(wanted, list):
            found = any(equals(value, each) for each in wanted)
        elif isinstance(wanted, dict):
            found = all(compared(value, sign, each) for sign, each in wanted.items())
        else:
            found = equals(value, wanted)
        if not found:
            return False
    return True


def compared(value, sign, wanted):
    if sign == "!=":
        return not equals(value, wanted)
    if sign in ("in", "not in"):
        return any(equals(value, each) for each in wanted) == (sign == "in")
    if value is None or isinstance(value, list) or kind(value) != kind(wanted):
        return False
    return value.startswith(wanted) if sign == "prefix" else COMPARE[sign](value, wanted)


ONE = NUMBERS | TEXTS | st.just(b"a")
OPERATIONS = (
    st.dictionaries(st.sampled_from(list(COMPARE)), ONE, min_size=1, max_size=2)
    | st.builds(lambda sign, values: {sign: values}, st.sampled_from(["in", "not in"]), st.lists(ONE | st.none()))
    | st.builds(lambda value: {"!=": value}, ONE | st.none())
    | st.builds(lambda value: {"prefix": value}, TEXTS)
)
LEAVES = st.dictionaries(st.sampled_from("xy"), ONE | st.none() | st.lists(ONE | st.none()) | OPERATIONS, max_size=2)
CONDITIONS = st.recursive(
    LEAVES | st.builds(lambda ids: {"$id": ids}, st.lists(st.integers(0, 50))),
    lambda inner: (
        st.builds(lambda each: {"$not": each}, inner)
        | st.builds(lambda word, each: {word: each}, st.sampled_from(["$or", "$and"]), st.lists(inner, min_size=1))
    ),
    max_leaves=4,
)
ALL_KINDS = [1, "a", b"a", None, ["a"]]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=30), st.lists(CONDITIONS, min_size=1, max_size=4))
def test_conditions_hold_for_the_items_for_which_they_hold_one_by_one(rows, conditions):
    # One item of each kind, so that no comparison is refused.
    rows = [*zip(ALL_KINDS, ALL_KINDS, strict=True), *rows]
    index = HammingIndex(8)
    half = len(rows) // 2
    for some in (range(half), range(half, len(rows))):
        codes = np.zeros((len(some), 1), dtype=np.uint8)
        index.add([*some], codes, {"x": [rows[row][0] for row in some], "y": [rows[row][1] for row in some]})
        # What was asked before is looked up for new items too.
        index.search(CODE, 1, {"x": 1, "y": "a"})
    index.remove([2])
    items = {row: dict(zip("xy", values, strict=True)) for row, values in enumerate(rows) if row != 2}
    for where in conditions:
        expected = [name for name, item in items.items() if holds(item, name, where)]
        assert index.search(CODE, len(rows), where).ids[0].tolist() == expected, where


def test_values_come_back_as_they_were_given(tmp_path):
    utc = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    given_values = {
        "done": [True, False, None],
        "tags": [["a", "b"], [], ("c",)],
        "day": [date(2020, 1, 2), date(2021, 1, 1), None],
        "at": [utc, utc.astimezone(timezone(timedelta(hours=5))), np.datetime64("NaT")],
        "naive": [datetime(2020, 1, 2), np.datetime64("2020-01-02T00:00:01"), datetime(2019, 1, 1)],
        "clock": [time(3, 4), time(23, 0, 0, 1), None],
    }
    with HammingIndex.create(tmp_path / "x", 8) as index:
        index.add([1, 2, 3], CODE.repeat(3, axis=0), given_values)
    with HammingIndex.open(tmp_path / "x") as index:
        first, second, third = index.metadata([1, 2, 3])
        assert first == {
            "done": True,
            "tags": ["a", "b"],
            "day": "2020-01-02",
            "at": "2020-01-02 03:04:05.000000Z",
            "naive": "2020-01-02 00:00:00.000000",
            "clock": "03:04:00.000000",
        }
        assert second["done"] is False and second["at"] == first["at"]
        assert third == {"tags": ["c"], "naive": "2019-01-01 00:00:00.000000"}
        for where, ids in (
            ({"done": True}, [1]),
            ({"done": 0}, [2]),
            ({"done": {"!=": True}}, [2, 3]),
            ({"tags": "b"}, [1]),
            ({"tags": ["b", "c"]}, [1, 3]),
            ({"tags": {"!=": None}}, [1, 2, 3]),
            ({"day": {">": date(2020, 6, 1)}}, [2]),
            ({"at": utc}, [1, 2]),
            ({"naive": {">=": datetime(2020, 1, 2), "<": np.datetime64("2020-01-02T00:00:01")}}, [1]),
        ):
            assert index.search(CODE, 3, where).ids[0].tolist() == ids, where
        assert index.values("tags") == ["a", "b", "c"] and index.values("done") == [False, True]
        index.update([2], {"done": [True]})
        assert index.metadata([2]) == [{**second, "done": True}]
        with pytest.raises(InputError, match="where compares 'done', which has numbers, with 'yes'"):
            index.search(CODE, 1, {"done": "yes"})


def test_many_small_additions_are_read_once_each_and_found():
    index = HammingIndex(8)
    for number in range(300):
        index.add([number], CODE, {"number": [number / 2]})
        assert index.search(CODE, 2, {"number": {">=": number / 2}}).ids.tolist() == [[number]]
    sizes = [len(part.codes) for part in index._columns._parts["number"]]
    assert sum(sizes) == 300 and len(sizes) < 12


ROWS = 600
COLUMNS = {
    "user": [f"user {row % 37}" for row in range(ROWS)],
    "price": [row / 7 for row in range(ROWS)],
    "mixed": [
        [row, row / 2, f"{row}", b"\xff%d" % row, ["a", f"{row % 5}"], None, True][row % 7] for row in range(ROWS)
    ],
}
ASKED = (
    {"user": "user 3"},
    {"price": {">=": 20, "<": 30}},
    {"mixed": "3"},
    {"mixed": [b"\xff10", 7, None]},
    {"mixed": {"prefix": "2"}, "$not": {"user": "user 7"}},
)


def found(index):
    return [index.search(CODE, ROWS + 9, where).ids[0].tolist() for where in ASKED]


@pytest.fixture
def large(tmp_path, monkeypatch):
    """An index whose columns are kept in files, and what it answers without them."""
    monkeypatch.setattr(column_files, "WORTH_KEEPING", 100)
    folder = tmp_path / "x"
    with HammingIndex.create(folder, 8) as index:
        index.add(range(ROWS), CODE.repeat(ROWS, axis=0), COLUMNS)
    with HammingIndex.open(folder) as index:
        expected = found(index)
    assert len(list((folder / "columns").iterdir())) == len(COLUMNS)
    return folder, expected


def test_columns_are_read_from_their_files_and_followed(large, monkeypatch):
    folder, expected = large
    with monkeypatch.context() as patch, HammingIndex.open(folder, read_only=True) as index:
        patch.setattr(Ledger, "column", None)
        assert found(index) == expected
    with HammingIndex.open(folder) as index:
        index.add([1000], CODE, {"user": ["user 3"], "price": [25.0], "mixed": ["3"]})
        index.remove([3])
        more = found(index)
    assert more[0][-1] == more[1][-1] == more[2][-1] == 1000
    with HammingIndex.open(folder, read_only=True) as index:
        assert found(index) == more
    shutil.rmtree(folder / "columns")
    with HammingIndex.open(folder, read_only=True) as index:
        assert found(index) == more


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_many_items_are_numbered_when_they_are_added(large, tmp_path, monkeypatch, blocks):
    _, expected = large
    monkeypatch.setattr(index, "BULK_ITEMS", ROWS // blocks)
    folder = tmp_path / "bulk"
    with HammingIndex.create(folder, 8) as made:
        for start in range(0, ROWS, ROWS // blocks):
            some = slice(start, start + ROWS // blocks)
            columns = {name.upper() if start else name: values[some] for name, values in COLUMNS.items()}
            made.add(range(ROWS)[some], CODE.repeat(ROWS // blocks, axis=0), columns)
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "column", None)
            assert found(made) == expected
        made.keep_columns()
    with monkeypatch.context() as patch, HammingIndex.open(folder, read_only=True) as opened:
        patch.setattr(Ledger, "column", None)
        assert found(opened) == expected
    with HammingIndex.open(folder) as opened:
        # Some lack a column; the files are of fewer items.
        opened.add(range(ROWS, 2 * ROWS), CODE.repeat(ROWS, axis=0), {"user": COLUMNS["user"]})
        more = found(opened)
    shutil.rmtree(folder / "columns")
    with HammingIndex.open(folder, read_only=True) as opened:
        assert found(opened) == more


@given(st.lists(VALUES, max_size=20), st.lists(VALUES, max_size=20))
def test_parts_that_are_joined_are_one_part_of_all_values(first, second):
    joined, whole = _joined(column_part(first), column_part(second)), column_part([*first, *second])
    assert (joined.codes.tolist(), joined.values, joined.starts) == (whole.codes.tolist(), whole.values, whole.starts)
    assert joined.places_of_tag == whole.places_of_tag and joined.codes.dtype == whole.codes.dtype


@given(st.data(), st.sampled_from([NUMBERS, TEXTS, st.floats(allow_nan=False), st.integers(-9, 9), st.none() | TEXTS]))
def test_rows_that_are_digested_together_have_the_digests_of_each(data, values):
    column = data.draw(st.lists(values, max_size=9))
    rows = [7 * row for row in range(len(column))]
    each = [digest_of(row, "a", value, "b", 2) for row, value in zip(rows, column, strict=True)]
    assert digests_of(rows, {"a": column, "b": [2] * len(column)}) == each


@pytest.mark.parametrize("damage", ["cut", "bit", "of another index", "empty", "text"])
def test_a_file_of_columns_that_is_not_what_was_written_is_passed_over(large, tmp_path, damage):
    folder, expected = large
    other = tmp_path / "other"
    with HammingIndex.create(other, 8) as index:
        reversed_columns = {name: values[::-1] for name, values in COLUMNS.items()}
        index.add(range(ROWS), CODE.repeat(ROWS, axis=0), reversed_columns)
        index.keep_columns()
    for path in (folder / "columns").iterdir():
        content = path.read_bytes()
        middle = len(content) // 3
        changed = {
            "cut": content[:-100],
            "bit": content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :],
            "of another index": (other / "columns" / path.name).read_bytes(),
            "empty": b"",
            "text": b"columns",
        }
        path.write_bytes(changed[damage])
    with HammingIndex.open(folder, read_only=True) as index:
        assert found(index) == expected


def test_an_index_with_files_of_columns_is_replaced_and_deleted_as_a_whole(large):
    folder, _ = large
    # Of a writer that was killed.
    temporary_name(next((folder / "columns").glob("*.npz"))).touch()
    delete_index(folder)
    assert not folder.exists()
