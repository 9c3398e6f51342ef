"""An export to a real server answers as the index does."""

import math
import re
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from deephash_pipeline.cli.main import cli
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.embeddings import VectorIndex
from deephash_pipeline.engines import milvus, open_export
from deephash_pipeline.engines.exporting import export_index
from deephash_pipeline.engines.postgres import PostgresIndex
from deephash_pipeline.hamming import HammingIndex
from tests.engines.conftest import small_index
from tests.hamming.brute_force import random_codes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "embeddings.md"
PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
CONDITIONS = [
    *({"label": "3"}, {"label": ["3", "5", "none"]}, {"year": {">=": 2020, "!=": 2022}}),
    *({"LABEL": {"<=": "4"}, "year": 2013}, {"label": {"!=": "3"}}, {"label": []}),
]
WITHOUT_VALUE = [{"label": None}, {"label": ["3", None]}, {"label": {"!=": None}}]
WITH_CONTROL_CHARACTERS = [{"label": "a\nb"}, {"label": ["3", "\t"]}, {"label": {"<": "\x01"}}]
OF_OTHER_KINDS = [
    ({"label": 3}, "'label', which has text, with 3"),
    ({"label": ["3", 3]}, "'label', which has text, with 3"),
    ({"label": {">": 7}}, "'label', which has text, with 7"),
    ({"year": {"<": "text"}}, "'year', which has numbers, with 'text'"),
    ({"year": {"<": None}}, "None after '<' for 'year'"),
]


@pytest.fixture(scope="module")
def index():
    return small_index()


@pytest.fixture(scope="module")
def exported(connect, index):
    target = connect("photos")
    report = export_index(index, target)
    assert (report.written, report.deleted, report.there) == (len(index), 0, 0)
    yield target
    target.close()


@pytest.fixture(scope="module")
def queries():
    return random_codes(np.random.default_rng(1), 20, 48)


def alike(ours, theirs):
    assert ours.ids.tolist() == theirs.ids.tolist()
    assert ours.distances.tolist() == theirs.distances.tolist()


def test_answers_are_those_of_the_index_in_the_order_of_distance_and_insertion(index, exported, queries):
    both = np.concatenate((queries, [index.get("photos/0003.png").code]))
    for k in (1, 7, 100, 2 * len(index)):
        alike(index.search(both, k), exported.search(both, k))


@pytest.mark.parametrize("where", CONDITIONS)
def test_conditions_hold_as_in_the_index(index, exported, queries, where):
    alike(index.search(queries[:3], 50, where), exported.search(queries[:3], 50, where))


@pytest.mark.parametrize(
    ("where", "message"),
    [
        *((where, "no value of 'label'") for where in WITHOUT_VALUE),
        *((where, "no control characters") for where in WITH_CONTROL_CHARACTERS),
    ],
)
def test_postgres_finds_as_the_index_does_what_milvus_refuses(index, exported, queries, where, message):
    if isinstance(exported, PostgresIndex):
        alike(index.search(queries[:3], 50, where), exported.search(queries[:3], 50, where))
    else:
        with pytest.raises(InputError, match=message):
            exported.search(queries[:3], 50, where)


@pytest.mark.parametrize(("where", "message"), OF_OTHER_KINDS)
def test_a_comparison_of_other_kinds_is_refused_alike(index, exported, queries, where, message):
    for asked in (index, exported):
        with pytest.raises(InputError, match=message):
            asked.search(queries[:1], 5, where)


@pytest.mark.parametrize("value", [math.inf, -math.inf, "a\0b", "\ud800", 2**63, b"3", [1], math.nan])
def test_a_value_that_no_exported_item_has_is_refused_by_its_name(exported, queries, value):
    for where in ({"year": {"<": value}}, {"label": [value]}):
        with pytest.raises(InputError, match=r"^(where|column) .*'(year|label)'.*(give|no such)"):
            exported.search(queries[:1], 5, where)


def test_items_are_those_of_the_index(index, exported):
    names = ["photos/0003.png", "photos/0010.png", "photos/0050.png"]
    for ours, theirs in zip(index.items(names), exported.items(names), strict=True):
        assert (ours.id, ours.code.tolist(), ours.metadata) == (theirs.id, theirs.code.tolist(), theirs.metadata)
    alike(index.search_by_id(names[0], 30), exported.search_by_id(names[0], 30))
    assert (len(exported), exported.code_length, exported.columns) == (len(index), 48, ["label", "year"])
    assert exported.values("label") == index.values("label")
    assert "photos/0005.png" not in exported
    assert 7 not in exported
    assert exported.sample(9, 1) == exported.sample(9, 1) != exported.sample(9, 2)
    assert set(exported.sample(9, 1)) <= set(index)
    with pytest.raises(InputError, match=r"photos/0005\.png' is not in (table|collection) photos"):
        exported.get("photos/0005.png")


def test_columns_of_many_values_have_the_first_of_them_and_leave_room_for_the_others(connect):
    ours = HammingIndex(8)
    items = range(1500)
    columns = {
        "label": [str(item % 10) for item in items],
        "number": [f"{item:04d}" for item in items],
        "path": [f"{item:0100d}" for item in items],
    }
    ours.add([str(item) for item in items], np.zeros((1500, 1), np.uint8), columns)
    with closing(connect("many_values")) as exported:
        export_index(ours, exported)
    with closing(connect("many_values")) as exported:
        for name in columns:
            first = exported.values(name)
            assert first == ours.values(name)[: len(first)]
            assert len(first) == len(ours.values(name)) if name == "label" else len(first) >= 100


@pytest.mark.parametrize("code_length", [1, 12, 64, 100])
def test_codes_of_any_length_are_compared_as_they_are(connect, code_length):
    ours = small_index(code_length, items=300, different=60)
    theirs = connect(f"length_{code_length}")
    export_index(ours, theirs)
    some = random_codes(np.random.default_rng(2), 5, code_length)
    alike(ours.search(some, 40), theirs.search(some, 40))
    theirs.close()


def test_an_export_is_repeated_continued_and_brought_up_to_date(connect, monkeypatch):
    index = small_index(items=2000)
    monkeypatch.setattr("deephash_pipeline.engines.exporting.EXPORTED_AT_ONCE", 500)
    broken = connect("again")
    put, calls = broken.put, []

    def fail(rows):
        calls.append(len(rows))
        if len(calls) == 3:
            raise InputError("the server is gone")
        put(rows)

    monkeypatch.setattr(broken, "put", fail)
    with pytest.raises(InputError, match="the server is gone"):
        export_index(index, broken)
    broken.close()
    with pytest.raises(InputError, match="broken off: run `deephash-pipeline export` again"):
        len(connect("again"))
    target = connect("again")
    continued = export_index(index, target)
    assert (continued.there, continued.written) == (1000, len(index) - 1000)
    again = export_index(index, target)
    assert (again.written, again.deleted, again.there) == (0, 0, len(index))
    index.remove(["photos/0001.png"])
    code = index.get("photos/0002.png").code[np.newaxis]
    index.add(["photos/0002.png"], code, {"label": ["new"], "year": [7]}, replace=True)
    changed = export_index(index, target)
    assert (changed.written, changed.deleted) == (1, 2)
    assert target.get("photos/0002.png").metadata == {"label": "new", "year": 7}
    assert len(connect("again")) == len(index)
    rebuilt = small_index(items=2000, seed=9)
    assert export_index(rebuilt, target).written > 0
    alike(rebuilt.search(code, 60), target.search(code, 60))


def test_an_export_that_answers_otherwise_is_refused(connect, index):
    target = connect("damaged")
    export_index(index, target)
    positions, _ = target.stored()
    target.delete(positions[-1:].tolist())
    count = target.count
    target.count = lambda: count() - 1
    with pytest.raises(InputError, match=r"rows of [\d,]+ items: export again"):
        export_index(index, target)
    target.count = count
    target.nearest = lambda codes, k, where: [[] for _ in codes]
    with pytest.raises(InputError, match="does not answer as the index does"):
        export_index(index, target)


def test_codes_of_another_length_and_foreign_tables_are_refused(connect, exported):
    with pytest.raises(InputError, match="has codes of 48 bits"):
        export_index(small_index(12, items=300, different=50), connect("photos"))


def test_numbers_are_ids_too(connect):
    index = small_index(items=300, different=60)
    numbered = type(index)(48)
    numbered.add(range(-5, 95), np.stack([item.code for item in index.items(list(index)[:100])]))
    target = connect("numbered")
    export_index(numbered, target)
    some = random_codes(np.random.default_rng(3), 4, 48)
    alike(numbered.search(some, 30), target.search(some, 30))
    assert target.get(-5).code.tolist() == numbered.get(-5).code.tolist()
    with pytest.raises(InputError, match="has 100 rows of 99 items: export again"):
        export_index(numbered, target, advance=lambda done: numbered.remove([7]))
    numbered.remove(list(numbered))
    assert export_index(numbered, target).deleted == 100
    numbered.add([7], np.zeros((1, 6), np.uint8))
    assert export_index(numbered, target).written == 1


@pytest.mark.parametrize(
    ("engine", "address"), [("postgres", "postgresql://me@db/papers"), ("milvus", "http://milvus:19530")]
)
def test_candidates_are_rescored_in_the_engine_as_the_page_says(engine, address, request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    server = request.getfixturevalue({"postgres": "postgres_url", "milvus": "milvus_uri"}[engine])
    rng = np.random.default_rng(7)
    vectors = (rng.normal(size=(900, 16)) @ rng.normal(size=(16, 40))).astype(np.float32)
    query = vectors[11] + rng.normal(scale=0.1, size=40).astype(np.float32)
    VectorIndex.build("papers.index", vectors, [f"paper/{row}" for row in range(900)]).close()
    for written in ("900 written", "0 written"):
        done = CliRunner().invoke(cli, ["export", "papers.index", "--to", engine, server])
        assert written in done.output, done.output
    [example] = [block for block in PYTHON.findall(PAGE.read_text()) if address in block]
    names = {"query": query, "VectorIndex": VectorIndex, "np": np}
    exec(example.replace(address, server), names)
    found = [row if engine == "postgres" else (row["entity"]["id"], row["distance"]) for row in names["rows"]]
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    assert [name for name, _ in found] == [f"paper/{row}" for row in np.argsort(-cosines)[:10]]
    np.testing.assert_allclose([cosine for _, cosine in found], np.sort(cosines)[:-11:-1], atol=0.01)
    other = HammingIndex(512)
    other.add(["a"], np.zeros((1, 64), np.uint8))
    with (
        open_export(engine, server, "papers_index") as target,
        pytest.raises(InputError, match="vectors of 40 numbers"),
    ):
        export_index(other, target)


def test_milvus_lists_the_first_of_more_ties_than_it_answers_with(milvus_uri, monkeypatch):
    index = small_index(items=2500, different=3)
    target = milvus.MilvusIndex(milvus_uri, "ties")
    export_index(index, target)
    some = random_codes(np.random.default_rng(4), 6, 48)
    monkeypatch.setattr(milvus, "MOST_HITS", 120)
    for where in (None, {"label": ["1", "2"]}):
        alike(index.search(some, 50, where), target.search(some, 50, where))
    with pytest.raises(InputError, match="at most 119 items"):
        target.search(some, 120)


def test_numbers_beyond_53_bits_are_exported_and_compared_exactly(postgres_url):
    values = [0.1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, 1e23, 1e300, 5e-324]
    index = HammingIndex(8)
    index.add(range(len(values)), np.zeros((len(values), 1), np.uint8), {"x": values})
    code = np.zeros((1, 1), dtype=np.uint8)
    with closing(PostgresIndex(postgres_url, "numbers")) as target:
        export_index(index, target)
        for value in (*values, 2.0**53):
            for wanted in (value, *({operator: value} for operator in ("!=", "<", "<=", ">", ">="))):
                alike(index.search(code, 10, {"x": wanted}), target.search(code, 10, {"x": wanted}))


def test_hnsw_is_asked_only_by_those_who_want_approximate_answers(postgres_url, index, queries):
    exact = PostgresIndex(postgres_url, "graph")
    export_index(index, exact)
    with pytest.raises(InputError, match=r"has no HNSW index: make it by .* --hnsw"):
        PostgresIndex(postgres_url, "graph", approximate=True)
    exact.add_hnsw()
    exact.add_hnsw()
    alike(index.search(queries, 10), exact.search(queries, 10))
    approximate = PostgresIndex(postgres_url, "graph", approximate=True).search(queries, 10)
    assert (approximate.distances >= index.search(queries, 10).distances).all()
    assert (np.diff(approximate.distances, axis=1) >= 0).all()


def test_a_server_that_is_not_there_is_named_in_one_line():
    with pytest.raises(InputError, match=r"table photos of 127\.0\.0\.1 cannot be asked .* check the address") as error:
        PostgresIndex("postgresql://someone:secret@127.0.0.1:1/none", "photos")
    assert "secret" not in str(error.value)
    with pytest.raises(InputError, match="collection photos of Milvus cannot be asked"):
        milvus.MilvusIndex("http://127.0.0.1:1", "photos")
