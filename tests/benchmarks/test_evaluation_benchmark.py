import json
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks import evaluation
from benchmarks.codes import first_queries, synthetic_codes
from benchmarks.documents import markdown_table
from benchmarks.evaluation import OURS, WITHOUT_COMPILER, measure_cell, tables
from benchmarks.processes import first_calls
from benchmarks.rivals import RIVALS
from deephash_pipeline.retrieval import average_precision, count_distances

INSTALLED = tuple(rival for rival in RIVALS if rival.package is None or find_spec(rival.package))
SMALL = {"queries": 30, "items": 400, "rival_queries": 5, "rounds": 1}


@pytest.fixture(scope="module")
def cell():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "SECONDS_OF_A_MEASUREMENT", 0.0)
        measured = measure_cell("trained", 3, 48, SMALL, INSTALLED)
    return measured


def rendered(cells):
    calls = [{"imports": 0.5, "48 bits": 2.0}, {"imports": 0.5, "48 bits": 0.25}]
    return "\n".join(map(markdown_table, tables({"cells": cells, "first_calls": calls}).values()))


def test_a_cell_has_every_method_and_the_exact_metric_of_the_rivals_queries(cell):
    exact = np.mean(average_precision(count_distances(*first_queries(synthetic_codes("trained", 3, 48, 30, 400), 5))))
    metrics = cell["mean_average_precision"]
    assert metrics["expectation"] == pytest.approx(exact)
    assert metrics["pessimistic"] <= metrics["expectation"] <= metrics["optimistic"]
    assert metrics["rivals"].keys() == {rival.name for rival in INSTALLED}
    assert cell["seconds"][OURS]["queries"] == cell["seconds"][WITHOUT_COMPILER]["queries"] == 30
    assert all(cell["seconds"][rival.name]["queries"] == 5 for rival in INSTALLED)
    assert json.loads(json.dumps(cell)) == cell


def test_two_exact_counts_that_differ_stop_the_benchmark(monkeypatch):
    monkeypatch.setattr(evaluation, "SECONDS_OF_A_MEASUREMENT", 0.0)
    other = count_distances(*synthetic_codes("random", 3, 48, 30, 400))
    monkeypatch.setattr(evaluation, "count_without_compiler", lambda _: other)
    with pytest.raises(RuntimeError, match="two exact counts differ for trained codes of 48 bits"):
        measure_cell("trained", 3, 48, SMALL, rivals=())


def test_tables_scale_rivals_to_all_queries_and_name_the_worst_cell(cell):
    def seconds(ours, theirs):
        of_methods = {name: {"cpu": ours, "wall": ours, "queries": 30} for name in cell["seconds"]}
        return of_methods | {rival.name: {"cpu": theirs, "wall": theirs, "queries": 5} for rival in INSTALLED}

    slow = {**cell, "clock_hertz": 4e9, "seconds": seconds(0.5, 2000.0)}
    fast = {**cell, "clock_hertz": 4e9, "code_length": 12, "seconds": seconds(0.25, 2.0)}
    text = rendered([slow, fast])
    # 2000 s for 5 queries are 12000 s for 30, and 24000 times half a second.
    assert "| 0.500 | 12000.0 (24,000) |" in text
    assert "| `scikit-learn` / ours | at least 300 | 48.00 | trained, 3 classes, 12 bits | missed |" in text
    assert "| without a compiler / ours | at least 8 | 1.00 |" in text
    # 30 x 400 pairs at 0.127 cycles and 4 GHz take 381 ns; half a second is 1.3 million times that.
    assert "| counting / floor, 48 bits | at most 3 | 1,312,336 | trained, 3 classes, 48 bits | missed |" in text
    assert "| second process | 0.500 | 0.250 | 0.750 |" in text
    assert "`argsort loop` / ours" not in text


def test_statements_are_timed_one_after_the_other_in_two_processes_with_one_cache():
    mark = "import tempfile; tempfile.mkstemp(dir=os.environ['NUMBA_CACHE_DIR'])"
    sleep = "time.sleep(0.2 if len(os.listdir(os.environ['NUMBA_CACHE_DIR'])) == 1 else 0)"
    first, second = first_calls({"imports": "import os", "mark": mark, "sleep": sleep})
    assert list(first) == list(second) == ["imports", "mark", "sleep"]
    assert first["sleep"] > 0.2 > second["sleep"] > 0
