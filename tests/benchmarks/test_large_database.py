from pathlib import Path

import pytest

from benchmarks import large_database


def test_a_process_of_its_own_evaluates_a_database_on_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_database, "QUERIES", 20)
    large_database.store(tmp_path, items=3000)
    measured = large_database.in_new_process(tmp_path, rounds=1)
    assert measured["wall_seconds"] > 0
    assert 10 < measured["mebibytes_before"] <= measured["mebibytes_peak"]


def test_the_table_has_a_row_for_each_size() -> None:
    row = {"items": 50_000, "wall_seconds": 0.05, "mebibytes_before": 200.0, "mebibytes_peak": 240.4}
    machine = {"processor": "A processor", "cores": 2, "load_average": 0.1}
    text = large_database.table({"machine": machine, "rows": [row, row | {"items": 1_000_000}]})
    assert "| 1,000,000 | 0.05 | 200 | 240 |" in text
    assert text.count("\n| ") == 4
