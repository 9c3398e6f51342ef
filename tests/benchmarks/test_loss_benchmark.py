import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import command_line, loss
from benchmarks.documents import PERFORMANCE_DOCUMENT, RESULTS, read_results
from benchmarks.loss_first_call import first_calls
from benchmarks.loss_memory import added_in_new_process
from benchmarks.loss_tables import OURS, OURS_TWO_THREADS, device_floor, loss_tables
from benchmarks.rival_losses import LOSSES

PROC = Path("/proc/self/clear_refs")


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(loss, "SECONDS_OF_A_MEASUREMENT", 0.0)
    monkeypatch.setattr(loss, "added_in_new_process", lambda *_: 1.5)
    measured: dict[str, Any] = loss.measure_cell(40, 12, rounds=1)
    return measured


def results_of(cells: list[dict[str, Any]], device: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "machine": {"processor": "P", "cores": 2, "memory_gib": 4.0, "system": "S", "load_average": 0.0},
        "versions": {"python": "3"},
        "settings": {"rounds": 1},
        "first_calls": [{"imports": 0.5, OURS: 2.0}, {"imports": 0.5, OURS: 0.25}],
        "cells": cells,
        "device": device,
    }


def test_a_cell_holds_the_time_and_the_memory_of_every_loss(cell: dict[str, Any]) -> None:
    assert cell["seconds"].keys() - {OURS_TWO_THREADS} == LOSSES.keys() == cell["mebibytes"].keys()
    assert all(seconds["cpu"] > 0 for seconds in cell["seconds"].values())
    assert json.loads(json.dumps(cell)) == cell


def test_ways_that_do_not_agree_stop_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "SECONDS_OF_A_MEASUREMENT", 0.0)
    monkeypatch.setitem(loss.LOSSES, "naive", lambda u, labels: 2 * LOSSES["tiles"](u, labels))
    with pytest.raises(RuntimeError, match="`naive` and `fused` give different gradients at 20 samples, 8 bits"):
        loss.measure_cell(20, 8, rounds=1)


def test_tables_tell_ratios_to_ours_and_whether_aims_are_reached(cell: dict[str, Any]) -> None:
    milliseconds = dict.fromkeys(cell["seconds"], 50.0) | {"naive": 3000.0, "bit by bit": 2500.0, "DPSH": 49.0}
    seconds = {name: {"cpu": figure / 1e3, "wall": figure / 1e3} for name, figure in milliseconds.items()}
    seconds[OURS_TWO_THREADS] = {"cpu": 0.06, "wall": 0.03125}
    kept = {name: {"cpu": 0.25, "wall": 0.25} for name in seconds} | {OURS: {"cpu": 0.1, "wall": 0.1}}
    large = {**cell, "batch": 2048, "code_length": 48, "clock_hertz": 4e9, "seconds": seconds}
    large["seconds_in_kept_memory"] = kept
    text = loss_tables(results_of([cell, large]))
    assert "| `naive` / `fused` | at least 100 | 60.0 | missed | 2.5 |" in text
    assert "| `bit by bit` / `fused` | at least 40 | 50.0 | reached | 2.5 |" in text
    assert "| `DPSH` / `fused` | at least 1 | 1.0 | missed | 2.5 |" in text
    # 2048 x 2047 / 2 x 48 bits of pairs in 0.05 s at 4 GHz.
    assert "| 2,048 | 48 | 1.99 | 1.60 |" in text
    assert "| second process | 0.50 | 0.25 |" in text
    assert "GPU" not in text


def test_tables_without_the_size_of_the_aims_have_none(cell: dict[str, Any]) -> None:
    assert "Aims" not in loss_tables(results_of([cell]))


def test_a_device_is_compared_with_the_time_of_its_arithmetic(cell: dict[str, Any]) -> None:
    # 3 pairs of 16 bits, two special functions each, 16 a cycle: 6 cycles; 12 others at 128 a cycle take less.
    assert device_floor(3, 16, processors=1, clock_hertz=1.0) == pytest.approx(6.0)
    device = {"name": "D", "processors": 1, "clock_hertz": 1e3, "batch": 3, "code_length": 16}
    text = loss_tables(results_of([cell], {**device, "seconds": 12e-3, "mebibytes": 7.0}))
    assert "| D | 3 | 16 | 12.00 | 6.00 | 2.0 (reached: at most 4) | 7 |" in text


@pytest.mark.skipif(not PROC.exists(), reason="peak memory can be reset on Linux only")
def test_peak_memory_counts_what_a_loss_allocates_and_frees_again() -> None:
    # The tensor of 400 x 400 pairs and 64 bits takes 39 MiB in float32.
    assert added_in_new_process("naive", 400, 64) > 39
    assert added_in_new_process("fused", 400, 64) < 4


def test_first_calls_are_timed_apart_from_imports() -> None:
    seconds = first_calls(["tiles", OURS])
    assert list(seconds) == ["imports", "tiles", OURS]
    assert min(seconds.values()) > 0


def test_an_interrupt_writes_nothing_and_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loss, "measure", interrupt)
    monkeypatch.setattr(command_line, "RESULTS", tmp_path)
    assert loss.main([]) == 130
    assert capsys.readouterr().err == "stopped; nothing was written\n"
    assert not list(tmp_path.iterdir())


def test_the_document_shows_the_results() -> None:
    results = RESULTS / "loss.json"
    if not results.is_file():
        pytest.skip("there are no results yet; `make bench` measures them")
    assert loss_tables(read_results(results)) in PERFORMANCE_DOCUMENT.read_text(encoding="utf-8")
