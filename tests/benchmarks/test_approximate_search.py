import json
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.documents import markdown_table
from benchmarks.studies.approximate_search import APPROXIMATE_SEARCH, Database, measure_database, tables
from benchmarks.studies.approximate_search_figure import draw, save
from benchmarks.studies.runs import finished_run
from benchmarks.studies.search_indexes import (
    FLAT,
    FLAT_MERGED,
    FLAT_UNPADDED,
    HNSW,
    IVF,
    MULTI_HASH,
    NO_ITEM,
    SETTINGS,
    SLOW,
    BuiltIndex,
    OverDistinctCodes,
    Setting,
    quality,
)
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval import distinct_codes

needs_faiss = pytest.mark.skipif(
    find_spec("faiss") is None, reason="faiss is not installed: `make .venv/bench` installs it"
)
seeds = st.integers(0, 2**32 - 1)
QUICKLY = APPROXIMATE_SEARCH.settings | {
    "queries": 20,
    "slow_pairs": 20_000,
    "rounds": 1,
    "seconds_of_a_measurement": 1e-6,
}


def clumped_codes(seed, count, bits=48, centres=5):
    """Codes as trained networks make them: few differ, and those from a centre by few bits."""
    generator = np.random.default_rng(seed)
    prototypes = np.random.default_rng(7).random((centres, bits)) < 0.5
    flips = generator.random((count, bits)) < 0.02
    return np.packbits(prototypes[generator.integers(0, centres, count)] ^ flips, axis=1)


def all_distances(queries, database):
    return np.unpackbits(queries[:, None] ^ database, axis=2).sum(axis=2, dtype=np.int64)


def quality_of(database, queries, items):
    distances = all_distances(queries, database)
    last = np.sort(distances, axis=1)[:, items.shape[1] - 1]
    return quality(database, queries, items, last, (distances < last[:, None]).sum(axis=1))


class ExactSearch:
    """The slow reference; finds nothing beyond `most` items."""

    def __init__(self, database, most=None):
        self.database = database
        self.most = most

    def search(self, queries, k):
        distances = all_distances(queries, self.database)
        items = np.argsort(distances, axis=1, kind="stable")[:, :k]
        found = np.take_along_axis(distances, items, axis=1).astype(np.int32)
        items[:, self.most :] = NO_ITEM if self.most is not None else items[:, self.most :]
        return found, items


@given(seed=seeds, k=st.integers(1, 12))
def test_quality_is_the_share_of_right_answers_and_of_strictly_nearer_items(seed, k):
    generator = np.random.default_rng(seed)
    database, queries = clumped_codes(seed, 12, bits=12), clumped_codes(seed + 1, 4, bits=12)
    items = generator.integers(NO_ITEM, 12, (4, k))
    right, nearer = 0, []
    for query, answers in zip(queries, items, strict=True):
        distances = [bin(int.from_bytes(query) ^ int.from_bytes(code)).count("1") for code in database]
        limit, answered = sorted(distances)[k - 1], set(answers.tolist()) - {NO_ITEM}
        right += sum(distances[item] <= limit for item in answered)
        strictly = {item for item in range(12) if distances[item] < limit}
        if strictly:
            nearer.append(len(strictly & answered) / len(strictly))
    expected = {"recall": right / (4 * k), "strictly_nearer_found": np.mean(nearer) if nearer else None}
    assert quality_of(database, queries, items) == pytest.approx(expected)


@given(seed=seeds, k=st.integers(1, 30))
def test_a_search_over_distinct_codes_is_as_exact_as_its_index(seed, k):
    database, queries = clumped_codes(seed, 30, bits=64, centres=2), clumped_codes(seed + 1, 3, bits=64, centres=2)
    index = OverDistinctCodes(database, ExactSearch)
    assert len(index.index.database) == distinct_codes(database)
    distances, items = index.search(queries, k)
    reference = all_distances(queries, database)
    np.testing.assert_array_equal(distances, np.sort(reference, axis=1)[:, :k])
    np.testing.assert_array_equal(distances, np.take_along_axis(reference, items, axis=1))
    assert all(len(set(row)) == k for row in items.tolist())


def test_where_an_index_finds_too_few_distinct_codes_items_are_missing_and_not_made_up():
    database = np.array([[0] * 8, [255] * 8, [0] * 8, [255] * 8], dtype=np.uint8)
    index = OverDistinctCodes(database, lambda codes: ExactSearch(codes, most=1))
    _, items = index.search(database[:2], 4)
    assert items.tolist() == [[0, 2, NO_ITEM, NO_ITEM], [1, 3, NO_ITEM, NO_ITEM]]


@needs_faiss
@pytest.mark.parametrize("family", [FLAT, FLAT_UNPADDED, FLAT_MERGED])
@pytest.mark.parametrize("bits", [12, 48, 64, 72])
def test_exact_indexes_are_exact_at_any_code_length(family, bits):
    database, queries = clumped_codes(1, 300, bits), clumped_codes(2, 20, bits)
    distances, items = BuiltIndex(Setting(family), database).searcher(queries, 10, {})()
    np.testing.assert_array_equal(distances, np.sort(all_distances(queries, database), axis=1)[:, :10])
    assert quality_of(database, queries, items)["recall"] == 1


@needs_faiss
def test_search_parameters_reach_the_index():
    database, queries = clumped_codes(1, 2000, centres=50), clumped_codes(2, 50, centres=50)
    for setting, low, high in (
        (Setting(IVF, {"nlist": 16}), {"nprobe": 1}, {"nprobe": 16}),
        (Setting(MULTI_HASH, {"nhash": 2, "b": 24}), {"nflip": 0}, {"nflip": 4}),
        (Setting(HNSW, {"M": 4}), {"efSearch": 10}, {"efSearch": 500}),
    ):
        built = BuiltIndex(setting, database)
        worse, better, again = (
            quality_of(database, queries, built.searcher(queries, 10, parameters)()[1])
            for parameters in (low, high, low)
        )
        assert worse["recall"] < better["recall"] and again == worse


@needs_faiss
def test_an_index_takes_at_least_the_bytes_of_its_codes():
    database = clumped_codes(1, 500)
    assert BuiltIndex(Setting(FLAT), database).size >= 500 * 8
    assert 500 * 6 <= BuiltIndex(Setting(FLAT_UNPADDED), database).size < 500 * 8
    assert BuiltIndex(Setting(HNSW, {"M": 16}), database).size > 500 * (8 + 2 * 16 * 4)
    assert BuiltIndex(Setting(FLAT_MERGED), database).size >= distinct_codes(database) * 8 + 500 * 4


def test_a_database_smaller_than_k_is_refused():
    with pytest.raises(InputError, match="tiny has 99 codes: give at least 100"):
        measure_database(Database("tiny", 48, clumped_codes(1, 99), clumped_codes(2, 5)), QUICKLY)


@pytest.fixture(scope="module")
def results():
    databases = [
        measure_database(
            Database(codes, 48, clumped_codes(items, items, centres=centres), clumped_codes(1, 60)), QUICKLY
        )
        for codes, centres in (("deephash.b48", 5), ("itq.b48", 200))
        for items in (2000, 4000)
    ]
    stored = json.loads(json.dumps({"databases": databases}))
    return stored


@needs_faiss
def test_every_setting_is_measured_on_every_database(results):
    for database in results["databases"]:
        assert database["queries"] == 20
        assert len(database["indexes"]) == sum(len(setting.searches) for setting in SETTINGS)
        for entry in database["indexes"]:
            assert set(entry["neighbours"]) == {"10", "100"}
            for measured in entry["neighbours"].values():
                assert 0 < measured["recall"] <= 1 and measured["cpu_seconds"] > 0
                assert measured["queries"] == (20_000 // database["items"] if entry["family"] in SLOW else 20)
                if entry["family"] in (FLAT, FLAT_UNPADDED, FLAT_MERGED):
                    assert measured["recall"] == 1 and measured["strictly_nearer_found"] in (1, None)


@needs_faiss
def test_ties_are_counted_by_the_distance_of_the_last_neighbour(results):
    reference = np.sort(all_distances(clumped_codes(1, 60)[::3], clumped_codes(2000, 2000)), axis=1)
    near = (reference <= reference[:, 9:10]).sum(axis=1)
    assert results["databases"][0]["ties"]["10"] == {"median_items_as_near": np.median(near)}


@needs_faiss
def test_tables_extrapolate_exact_search_and_mark_indexes_that_never_find_enough(results):
    made_up = json.loads(json.dumps(results))
    for database in made_up["databases"]:
        database["indexes"][0]["neighbours"]["10"]["cpu_seconds"] = 1e-9 * database["items"]
        for entry in database["indexes"]:
            if entry["family"] == IVF:
                entry["neighbours"]["10"] |= {"recall": 0.25, "strictly_nearer_found": 0.125}
    text = {name: markdown_table(rows) for name, rows in tables(made_up).items()}
    assert "| DeepHash (fine-tuning) | 10,000,000 | 80.0 | 10.0 | 100 | extrapolated |" in text["exact"]
    assert "| *0.2500* | 0.1250 |" in text["best"]
    assert "strictly nearer found@100" in text["itq.b48 4000"]


@needs_faiss
def test_the_figure_has_a_panel_for_each_database_and_a_line_for_each_index(results):
    figure = draw(results)
    assert len(figure.axes) == 4
    for panel in figure.axes:
        # One more for exact search.
        assert len(panel.lines) == len(SETTINGS) + 1
        assert sum(len(line.get_xdata()) for line in panel.lines[:-1]) == sum(len(one.searches) for one in SETTINGS)


def test_the_stored_results_are_drawn(tmp_path):
    save(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 20_000


def test_without_a_finished_run_one_line_names_the_command_that_makes_it(new_project):
    command = "make it by `kedro run --pipelines=full --env=mnist`"
    with (
        pytest.raises(InputError, match=f"training_images is missing or unreadable: {command}"),
        finished_run("mnist", new_project("without_a_run")) as catalog,
    ):
        catalog.load("training_images")
