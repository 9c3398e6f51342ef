from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks.index_folders import measure_folder
from benchmarks.search import QUERIES, Case, beside_plain, compare, draw


def test_codes_of_a_case_have_no_bits_beyond_their_length():
    database, queries = draw(Case("12 bits", 12), 100)
    assert (database.shape, queries.shape) == ((100, 2), (QUERIES, 2))
    assert not np.any(database[:, 1] & 0x0F)
    few, _ = draw(Case("few", 48, distinct=7), 1000)
    assert len(np.unique(few, axis=0)) <= 7


def test_an_index_in_a_folder_is_measured(tmp_path):
    measured = measure_folder(tmp_path / "index", 6000, 3)
    assert measured["items"] == "6,000"
    assert float(measured["bytes a code"]) < 80
    assert float(measured["queries a second"].replace(",", "")) > 0
    assert float(measured["add, p95 ms"]) > 0


@pytest.mark.skipif(
    find_spec("faiss") is None or find_spec("usearch") is None, reason="`make .venv/bench` installs faiss and usearch"
)
def test_the_index_faiss_and_usearch_find_equal_distances(monkeypatch):
    monkeypatch.setattr("benchmarks.search.SECONDS_OF_A_MEASUREMENT", 0.001)
    measured = compare(Case("small", 48, clustered=True), 3000, rounds=1)
    for asked in ("batch", "one query"):
        theirs, ours = (float(measured[f"{asked}, {name}, ms a query"]) for name in ("faiss", "index"))
        assert float(measured[f"{asked}, times as fast"]) == pytest.approx(theirs / ours, rel=0.1, abs=0.06)


def test_searches_with_conditions_are_timed_beside_plain_ones(monkeypatch):
    monkeypatch.setattr("benchmarks.search.SECONDS_OF_A_MEASUREMENT", 0.001)
    batch, single = beside_plain(64, 3000, rounds=1)
    assert batch.keys() == single.keys()
    assert min(float(batch[name]) for name in batch if name != "codes") > 0
