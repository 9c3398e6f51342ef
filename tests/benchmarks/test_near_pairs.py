from importlib.util import find_spec

import pytest

from benchmarks.near_pairs import Case, compare


@pytest.mark.skipif(find_spec("faiss") is None, reason="faiss is not installed: `make .venv/bench` installs it")
def test_the_index_and_faiss_find_as_many_pairs():
    measured = compare(Case(64, 12), 3000, 1000)
    assert int(measured["pairs"].replace(",", "")) > 0
