from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks.index_folders import measure_folder
from benchmarks.search import Case, compare, draw


def test_codes_of_a_case_have_no_bits_beyond_their_length() -> None:
    database, queries = draw(Case("12 bits", 12, 10, 1), 100)
    assert (database.shape, queries.shape) == ((100, 2), (10, 2))
    assert not np.any(database[:, 1] & 0x0F)
    few, _ = draw(Case("few", 48, 10, 1, distinct=7), 1000)
    assert len(np.unique(few, axis=0)) <= 7


def test_an_index_in_a_folder_is_measured(tmp_path: Path) -> None:
    measured = measure_folder(6000, tmp_path / "index", 3)
    assert measured["items"] == 6000
    assert measured["bytes_per_item"] < 80
    assert measured["queries_per_second"] > 0
    assert measured["add_p95_ms"] >= measured["add_p50_ms"] > 0


@pytest.mark.skipif(
    find_spec("faiss") is None, reason="faiss is not installed: `make .venv/bench-installed` installs it"
)
def test_the_index_and_faiss_find_equal_distances() -> None:
    measured = compare(Case("small", 48, 5, 1), 3000, rounds=1)
    assert measured["ratio"] == pytest.approx(measured["faiss_ms"] / measured["index_ms"])
