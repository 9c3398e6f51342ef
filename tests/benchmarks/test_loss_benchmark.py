import json
from pathlib import Path

import pytest

from benchmarks import loss
from benchmarks.documents import markdown_table
from benchmarks.loss import OURS, OURS_TWO_THREADS, tables
from benchmarks.processes import in_new_process
from benchmarks.rival_losses import LOSSES

DEVICE = {"name": "D", "processors": 1, "clock_hertz": 1e3, "batch": 3, "code_length": 16}


@pytest.fixture(scope="module")
def cell():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss, "SECONDS_OF_A_MEASUREMENT", 0.0)
        patch.setattr(loss, "in_new_process", lambda *_: 1.5)
        measured = loss.measure_cell(40, 12, rounds=1)
    return measured


def rendered(cells, device=None):
    calls = [{"imports": 0.5, OURS: 2.0}, {"imports": 0.5, OURS: 0.25}]
    contents = tables({"cells": cells, "first_calls": calls, "device": device}).items()
    return {name: content if isinstance(content, str) else markdown_table(content) for name, content in contents}


def test_a_cell_has_the_time_and_the_memory_of_every_loss(cell):
    assert cell["seconds"].keys() - {OURS_TWO_THREADS} == LOSSES.keys() == cell["mebibytes"].keys()
    assert all(seconds["cpu"] > 0 for seconds in cell["seconds"].values())
    assert json.loads(json.dumps(cell)) == cell


def test_ways_that_do_not_agree_stop_the_benchmark(monkeypatch):
    monkeypatch.setattr(loss, "SECONDS_OF_A_MEASUREMENT", 0.0)
    monkeypatch.setitem(loss.LOSSES, "naive", lambda u, labels: 2 * LOSSES["tiles"](u, labels))
    with pytest.raises(RuntimeError, match="`naive` and `fused` give different gradients at 20 samples, 8 bits"):
        loss.measure_cell(20, 8, rounds=1)


def test_tables_have_ratios_to_ours_and_whether_aims_are_reached(cell):
    milliseconds = dict.fromkeys(cell["seconds"], 50.0) | {"naive": 3000.0, "bit by bit": 2500.0, "DPSH": 49.0}
    seconds = {name: {"cpu": taken / 1e3, "wall": taken / 1e3} for name, taken in milliseconds.items()}
    seconds[OURS_TWO_THREADS] = {"cpu": 0.06, "wall": 0.03125}
    kept = {name: {"cpu": 0.25, "wall": 0.25} for name in seconds} | {OURS: {"cpu": 0.1, "wall": 0.1}}
    large = {**cell, "batch": 2048, "code_length": 48, "clock_hertz": 4e9, "seconds": seconds}
    text = rendered([cell, {**large, "seconds_in_kept_memory": kept}])
    assert "| `naive` / `fused` | at least 100 | 60.0 | missed | 2.5 |" in text["aims"]
    assert "| `bit by bit` / `fused` | at least 40 | 50.0 | reached | 2.5 |" in text["aims"]
    assert "| `DPSH` / `fused` | at least 1 | 1.0 | missed | 2.5 |" in text["aims"]
    # 2048 x 2047 / 2 x 48 bits of pairs in 0.05 s at 4 GHz.
    assert "| 2,048 | 48 | 1.99 | 1.60 |" in text["own"]
    assert "| second process | 0.50 | 0.25 |" in text["first calls"]
    assert text["device"] == "Not measured: no CUDA device."


def test_a_device_is_compared_with_the_time_of_its_arithmetic(cell):
    # 3 pairs of 16 bits, two special functions each, 16 a cycle: 6 cycles; 12 others at 128 a cycle take less.
    text = rendered([cell], {**DEVICE, "seconds": 12e-3, "mebibytes": 7.0})
    assert "| D | 3 | 16 | 12.00 | 6.00 | 2.0 (reached: at most 4) | 7 |" in text["device"]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory can be reset on Linux only")
def test_peak_memory_counts_what_a_loss_allocates_and_frees_again():
    # The tensor of 400 x 400 pairs and 64 bits takes 39 MiB in float32.
    assert in_new_process("benchmarks.rival_losses:added_mebibytes", "naive", 400, 64) > 39
    assert in_new_process("benchmarks.rival_losses:added_mebibytes", "fused", 400, 64) < 4
