from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks.index_folders import measure_folder
from benchmarks.search import Case, compare, draw


def test_codes_of_a_case_have_no_bits_beyond_their_length():
    database, queries = draw(Case("12 bits", 12, 10), 100)
    assert (database.shape, queries.shape) == ((100, 2), (10, 2))
    assert not np.any(database[:, 1] & 0x0F)
    few, _ = draw(Case("few", 48, 10, distinct=7), 1000)
    assert len(np.unique(few, axis=0)) <= 7


def test_an_index_in_a_folder_is_measured(tmp_path):
    measured = measure_folder(tmp_path / "index", 6000, 3)
    assert measured["items"] == "6,000"
    assert float(measured["bytes a code"]) < 80
    assert float(measured["queries a second"].replace(",", "")) > 0
    assert float(measured["add, p95 ms"]) > 0


@pytest.mark.skipif(find_spec("faiss") is None, reason="faiss is not installed: `make .venv/bench` installs it")
def test_the_index_and_faiss_find_equal_distances():
    measured = compare(Case("small", 48, 5), 3000, rounds=1)
    theirs, ours = (float(measured[f"{name}, ms a query"]) for name in ("faiss", "index"))
    assert float(measured["times as fast"]) == pytest.approx(theirs / ours, rel=0.1, abs=0.06)
