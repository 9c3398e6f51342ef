import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.approximate_search import DOCUMENT, Settings, measure_database
from benchmarks.approximate_search_figure import draw
from benchmarks.approximate_search_findings import document_sections
from benchmarks.documents import PROJECT, replaced_between_markers
from benchmarks.search_indexes import (
    FLAT,
    FLAT_MERGED,
    FLAT_UNPADDED,
    HNSW,
    IVF,
    MULTI_HASH,
    NO_ITEM,
    SETTINGS,
    SLOW,
    OverDistinctCodes,
    Setting,
    build_index,
    recall,
)
from deephash_pipeline.errors import InputError
from deephash_pipeline.retrieval import distinct_codes

needs_faiss = pytest.mark.skipif(
    find_spec("faiss") is None, reason="faiss is not installed: `make .venv/bench-installed` installs it"
)
seeds = st.integers(0, 2**32 - 1)
QUICKLY = Settings(queries=20, slow_pairs=20_000, rounds=1, seconds_of_a_measurement=1e-6)


def clumped_codes(seed: int, count: int, bits: int = 48, centres: int = 5) -> NDArray[np.uint8]:
    """Codes as trained networks make them: few differ, and those from a centre by few bits."""
    generator = np.random.default_rng(seed)
    prototypes = np.random.default_rng(7).random((centres, bits)) < 0.5
    flips = generator.random((count, bits)) < 0.02
    return np.packbits(prototypes[generator.integers(0, centres, count)] ^ flips, axis=1)


def all_distances(queries: NDArray[np.uint8], database: NDArray[np.uint8]) -> NDArray[np.int64]:
    return np.unpackbits(queries[:, None] ^ database, axis=2).sum(axis=2, dtype=np.int64)


class ExactSearch:
    """The slow reference; finds nothing beyond `most` items."""

    def __init__(self, database: NDArray[np.uint8], most: int | None = None) -> None:
        self.database = database
        self.most = most

    def search(self, queries: NDArray[np.uint8], k: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        distances = all_distances(queries, self.database)
        items = np.argsort(distances, axis=1, kind="stable")[:, :k]
        found = np.take_along_axis(distances, items, axis=1).astype(np.int32)
        items[:, self.most :] = NO_ITEM if self.most is not None else items[:, self.most :]
        return found, items


@given(seed=seeds, k=st.integers(1, 12))
def test_recall_is_the_share_of_answers_no_further_than_the_last_exact_neighbour(seed: int, k: int) -> None:
    generator = np.random.default_rng(seed)
    database, queries = clumped_codes(seed, 12, bits=12), clumped_codes(seed + 1, 4, bits=12)
    items = generator.integers(NO_ITEM, 12, (4, k))
    last = np.sort(all_distances(queries, database), axis=1)[:, k - 1]
    right = 0
    for query, answers, limit in zip(queries, items, last, strict=True):
        for item in set(answers.tolist()) - {NO_ITEM}:
            right += bin(int.from_bytes(query) ^ int.from_bytes(database[item])).count("1") <= limit
    assert recall(database, queries, items, last) == pytest.approx(right / (4 * k))


def test_any_order_of_ties_is_right_and_an_item_counts_once() -> None:
    database = np.array([[0], [0], [0], [255]], dtype=np.uint8)
    queries = np.zeros((1, 1), dtype=np.uint8)
    exactly = np.array([0])
    assert recall(database, queries, np.array([[0, 1]]), exactly) == 1
    assert recall(database, queries, np.array([[2, 0]]), exactly) == 1
    assert recall(database, queries, np.array([[1, 1]]), exactly) == 0.5
    assert recall(database, queries, np.array([[3, NO_ITEM]]), exactly) == 0


@given(seed=seeds, k=st.integers(1, 30))
def test_a_search_over_distinct_codes_is_as_exact_as_its_index(seed: int, k: int) -> None:
    database, queries = clumped_codes(seed, 30, bits=64, centres=2), clumped_codes(seed + 1, 3, bits=64, centres=2)
    index = OverDistinctCodes(database, ExactSearch)
    assert len(index.index.database) == distinct_codes(database)
    distances, items = index.search(queries, k)
    reference = all_distances(queries, database)
    np.testing.assert_array_equal(distances, np.sort(reference, axis=1)[:, :k])
    np.testing.assert_array_equal(distances, np.take_along_axis(reference, items, axis=1))
    assert all(len(set(row)) == k for row in items.tolist())


def test_where_an_index_finds_too_few_distinct_codes_items_are_missing_and_not_made_up() -> None:
    database = np.array([[0] * 8, [255] * 8, [0] * 8, [255] * 8], dtype=np.uint8)
    index = OverDistinctCodes(database, lambda codes: ExactSearch(codes, most=1))
    _, items = index.search(database[:2], 4)
    assert items.tolist() == [[0, 2, NO_ITEM, NO_ITEM], [1, 3, NO_ITEM, NO_ITEM]]


@needs_faiss
@pytest.mark.parametrize("family", [FLAT, FLAT_UNPADDED, FLAT_MERGED])
@pytest.mark.parametrize("bits", [12, 48, 64, 72])
def test_exact_indexes_are_exact_at_any_code_length(family: str, bits: int) -> None:
    database, queries = clumped_codes(1, 300, bits), clumped_codes(2, 20, bits)
    distances, items = build_index(Setting(family), database).searcher(queries, 10, {})()
    reference = all_distances(queries, database)
    np.testing.assert_array_equal(distances, np.sort(reference, axis=1)[:, :10])
    assert recall(database, queries, items, distances[:, -1]) == 1


@needs_faiss
def test_search_parameters_reach_the_index() -> None:
    database, queries = clumped_codes(1, 2000, centres=50), clumped_codes(2, 50, centres=50)
    last = np.sort(all_distances(queries, database), axis=1)[:, 9]
    for setting, low, high in (
        (Setting(IVF, {"nlist": 16}), {"nprobe": 1}, {"nprobe": 16}),
        (Setting(MULTI_HASH, {"nhash": 2, "b": 24}), {"nflip": 0}, {"nflip": 4}),
        (Setting(HNSW, {"M": 4}), {"efSearch": 10}, {"efSearch": 500}),
    ):
        built = build_index(setting, database)
        worse, better = (
            recall(database, queries, built.searcher(queries, 10, parameters)()[1], last) for parameters in (low, high)
        )
        assert worse < better
    assert recall(database, queries, built.searcher(queries, 10, low)()[1], last) == worse


@needs_faiss
def test_an_index_takes_at_least_the_bytes_of_its_codes() -> None:
    database = clumped_codes(1, 500)
    assert build_index(Setting(FLAT), database).size >= 500 * 8
    assert 500 * 6 <= build_index(Setting(FLAT_UNPADDED), database).size < 500 * 8
    assert build_index(Setting(HNSW, {"M": 16}), database).size > 500 * (8 + 2 * 16 * 4)
    assert build_index(Setting(FLAT_MERGED), database).size >= distinct_codes(database) * 8 + 500 * 4


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (Setting("LSH"), "unknown index `LSH`"),
        (Setting(MULTI_HASH, {"nhash": 4, "b": 16}), "64 bits needs longer codes"),
    ],
)
def test_an_index_that_cannot_be_built_is_refused(setting: Setting, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_index(setting, clumped_codes(1, 10))


def test_a_database_smaller_than_k_is_refused() -> None:
    with pytest.raises(InputError, match="tiny has 99 codes: give at least 100"):
        measure_database("tiny", 48, clumped_codes(1, 99), clumped_codes(2, 5), QUICKLY)


def test_indexes_without_an_exact_one_to_be_measured_by_are_refused() -> None:
    with pytest.raises(InputError, match="the first index is HNSW: give Flat first"):
        measure_database("tiny", 48, clumped_codes(1, 200), clumped_codes(2, 5), QUICKLY, SETTINGS[::-1][1:])


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    databases = [
        measure_database(codes, 48, clumped_codes(items, items, centres=centres), clumped_codes(1, 60), QUICKLY)
        for codes, centres in (("deephash.b48", 5), ("itq.b48", 200))
        for items in (2000, 4000)
    ]
    machine = {"processor": "some processor", "memory_gib": 8.0, "system": "some system", "load_average": 0.0}
    settings = asdict(QUICKLY)
    stored: dict[str, Any] = json.loads(
        json.dumps({"machine": machine, "versions": {"faiss": "1"}, "settings": settings, "databases": databases})
    )
    return stored


@needs_faiss
def test_every_setting_is_measured_on_every_database(results: dict[str, Any]) -> None:
    searches = sum(len(setting.searches) for setting in SETTINGS)
    for database in results["databases"]:
        assert database["queries"] == 20
        assert len(database["indexes"]) == searches
        for entry in database["indexes"]:
            assert set(entry["neighbours"]) == {"10", "100"}
            for figures in entry["neighbours"].values():
                assert 0 < figures["recall"] <= 1
                assert figures["cpu_seconds"] > 0
                assert figures["queries"] == (20_000 // database["items"] if entry["family"] in SLOW else 20)
                assert entry["family"] not in (FLAT, FLAT_UNPADDED, FLAT_MERGED) or figures["recall"] == 1


@needs_faiss
def test_ties_are_counted_by_the_distance_of_the_last_neighbour(results: dict[str, Any]) -> None:
    reference = np.sort(all_distances(clumped_codes(1, 60)[::3], clumped_codes(2000, 2000)), axis=1)
    near = (reference <= reference[:, 9:10]).sum(axis=1)
    ties = results["databases"][0]["ties"]["10"]
    assert ties == {"median_distance": np.median(reference[:, 9]), "median_items_as_near": np.median(near)}


@needs_faiss
def test_the_document_has_a_place_for_everything_that_is_written(results: dict[str, Any]) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    sections = document_sections(results)
    assert set(re.findall(r"<!-- (.+): begin -->", text)) == set(sections)
    for section, content in sections.items():
        text = replaced_between_markers(text, section, content)
    assert "ITQ, 4,000 codes" in text
    assert f"{results['databases'][0]['distinct_codes']:,} distinct" in text


@needs_faiss
def test_all_rows_of_a_table_are_as_wide_as_its_header(results: dict[str, Any]) -> None:
    for content in document_sections(results).values():
        for table in re.findall(r"(?:^\|.*\n?)+", content, flags=re.MULTILINE):
            assert len({line.count("|") for line in table.splitlines()}) == 1


@needs_faiss
def test_the_findings_hold_for_indexes_that_never_find_enough(results: dict[str, Any]) -> None:
    poor = json.loads(json.dumps(results))
    for database in poor["databases"]:
        for entry in database["indexes"]:
            if entry["family"] == IVF:
                entry["neighbours"]["10"]["recall"] = 0.25
    words = " ".join(document_sections(poor)["findings"].split())
    assert "**IVF** finds 0.99 of the ten nearest in 0 of 4 databases; the most it finds elsewhere is 0.2500" in words
    assert "| *0.2500* |" in document_sections(poor)["best settings"]


@needs_faiss
def test_exact_search_is_extrapolated_linearly_from_the_largest_database(results: dict[str, Any]) -> None:
    timed = json.loads(json.dumps(results))
    for database in timed["databases"]:
        database["indexes"][0]["neighbours"]["10"]["cpu_seconds"] = 1e-9 * database["items"]
    rows = document_sections(timed)["exact search"].splitlines()
    assert rows[4] == "| DeepHash (fine-tuning) | 10,000,000 | 80.0 | 10.0 | 100 | extrapolated |"
    assert "up to about 1 million codes" in " ".join(document_sections(timed)["findings"].split())


@needs_faiss
def test_the_figure_has_a_panel_for_each_database_and_a_line_for_each_index(results: dict[str, Any]) -> None:
    figure = draw(results)
    assert len(figure.data) == 4 * len(SETTINGS)
    assert sum(trace.showlegend for trace in figure.data) == len(SETTINGS)
    assert len({(trace.xaxis, trace.yaxis) for trace in figure.data}) == 4
    assert sum(len(trace.x) for trace in figure.data) == 4 * sum(len(setting.searches) for setting in SETTINGS)


@needs_faiss
def test_without_a_finished_run_one_line_names_the_command_that_makes_it(new_project: Callable[[str], Path]) -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks.approximate_search", "--project", str(new_project("without_a_run"))],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 1
    told = finished.stderr.strip().splitlines()
    assert told == [
        "Error: training_images is missing or unreadable: make it by `kedro run --pipeline=full --env=mnist`"
    ]
