import json
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import command_line, evaluation
from benchmarks.codes import synthetic_codes
from benchmarks.documents import PERFORMANCE_DOCUMENT, RESULTS, read_results
from benchmarks.evaluation_tables import OURS, WITHOUT_COMPILER, evaluation_tables
from benchmarks.first_call import first_calls
from benchmarks.rivals import RIVALS
from deephash_pipeline.retrieval import average_precision, count_distances

INSTALLED = tuple(rival for rival in RIVALS if rival.package is None or find_spec(rival.package))


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(evaluation, "SECONDS_OF_A_MEASUREMENT", 0.0)
    benchmark = synthetic_codes("trained", 3, 48, 30, 400)
    measured: dict[str, Any] = evaluation.measure_cell(benchmark, rival_queries=5, rounds=1, rivals=INSTALLED)
    return measured


def results_of(cells: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "machine": {"processor": "P", "cores": 2, "memory_gib": 4.0, "system": "S", "load_average": 0.0},
        "versions": {"python": "3"},
        "settings": {"queries": 30, "items": 400, "rival_queries": 5, "rounds": 1},
        "first_calls": [{"imports": 0.5, "48 bits": 2.0}, {"imports": 0.5, "48 bits": 0.25}],
        "cells": cells,
    }


def test_a_cell_holds_every_method_and_the_exact_figure_of_the_rivals_queries(cell: dict[str, Any]) -> None:
    first_five = synthetic_codes("trained", 3, 48, 30, 400).first_queries(5)
    exact = np.mean(average_precision(count_distances(**first_five.arguments())))
    figures = cell["mean_average_precision"]
    assert figures["expectation"] == pytest.approx(exact)
    assert figures["pessimistic"] <= figures["expectation"] <= figures["optimistic"]
    assert figures["rivals"].keys() == {rival.name for rival in INSTALLED}
    assert cell["seconds"][OURS]["queries"] == cell["seconds"][WITHOUT_COMPILER]["queries"] == 30
    assert all(cell["seconds"][rival.name]["queries"] == 5 for rival in INSTALLED)
    assert json.loads(json.dumps(cell)) == cell


def test_two_exact_counts_that_differ_stop_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "SECONDS_OF_A_MEASUREMENT", 0.0)
    other = count_distances(**synthetic_codes("random", 3, 48, 30, 400).arguments())
    monkeypatch.setattr(evaluation, "count_without_compiler", lambda _: other)
    with pytest.raises(RuntimeError, match="two exact counts differ for trained codes of 48 bits"):
        evaluation.measure_cell(synthetic_codes("trained", 3, 48, 30, 400), 5, rounds=1, rivals=())


def test_tables_scale_rivals_to_all_queries_and_name_the_worst_cell(cell: dict[str, Any]) -> None:
    def seconds(ours: float, theirs: float) -> dict[str, Any]:
        of_methods = {name: {"cpu": ours, "wall": ours, "queries": 30} for name in cell["seconds"]}
        of_methods |= {rival.name: {"cpu": theirs, "wall": theirs, "queries": 5} for rival in INSTALLED}
        return of_methods

    slow = {**cell, "clock_hertz": 4e9, "seconds": seconds(0.5, 2000.0)}
    fast = {**cell, "clock_hertz": 4e9, "code_length": 12, "seconds": seconds(0.25, 2.0)}
    text = evaluation_tables(results_of([slow, fast]))
    # 2000 s for 5 queries are 12000 s for 30, and 24000 times half a second.
    assert "| 0.500 | 12000.0 (24,000) |" in text
    assert "| `scikit-learn` / ours | at least 300 | 48.00 | trained, 3 classes, 12 bits | missed |" in text
    assert "| without a compiler / ours | at least 8 | 1.00 |" in text
    # 30 x 400 pairs at 0.127 cycles and 4 GHz take 381 ns; half a second is 1.3 million times that.
    assert "| counting / floor, 48 bits | at most 3 | 1,312,336 | trained, 3 classes, 48 bits | missed |" in text
    assert "| second process | 0.500 | 0.250 | 0.750 |" in text
    assert "`argsort loop` / ours" not in text


def test_cells_of_a_single_thread_have_tables_too(cell: dict[str, Any]) -> None:
    one_thread = {**cell, "seconds": {name: of for name, of in cell["seconds"].items() if "two threads" not in name}}
    assert "one thread / two threads" not in evaluation_tables(results_of([one_thread]))


def test_missing_packages_are_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.measuring.find_spec", lambda _: None)
    assert evaluation.main(["--quick"]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "faiss" in told and "`make bench` installs" in told


def test_an_interrupt_writes_nothing_and_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluation, "require_packages", lambda _: None)
    monkeypatch.setattr(evaluation, "measure", interrupt)
    monkeypatch.setattr(command_line, "RESULTS", tmp_path)
    assert evaluation.main([]) == 130
    assert capsys.readouterr().err == "stopped; nothing was written\n"
    assert not list(tmp_path.iterdir())


def test_two_processes_share_a_cache_of_compiled_code_that_is_empty_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    caches: list[Path] = []

    def run(command: list[str], env: dict[str, str], **_: Any) -> subprocess.CompletedProcess[str]:
        caches.append(Path(env["NUMBA_CACHE_DIR"]))
        found = [file.name for file in caches[-1].iterdir()]
        assert found == ([] if len(caches) == 1 else ["compiled"])
        (caches[-1] / "compiled").touch()
        return subprocess.CompletedProcess(command, 0, stdout=f'{{"12 bits": {len(caches)}}}')

    monkeypatch.setattr(subprocess, "run", run)
    assert evaluation.measure_first_calls([12]) == [{"12 bits": 1}, {"12 bits": 2}]
    assert caches[0] == caches[1] and not caches[0].exists()


def test_first_calls_are_timed_apart_from_imports_and_by_code_length() -> None:
    seconds = first_calls([12, 48])
    assert list(seconds) == ["imports", "12 bits", "48 bits"]
    assert min(seconds.values()) > 0


def test_the_document_shows_the_results() -> None:
    results = RESULTS / "evaluation.json"
    if not results.is_file():
        pytest.skip("there are no results yet; `make bench` measures them")
    assert evaluation_tables(read_results(results)) in PERFORMANCE_DOCUMENT.read_text(encoding="utf-8")
