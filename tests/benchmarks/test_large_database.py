from pathlib import Path

from benchmarks import large_database
from benchmarks.processes import in_new_process


def test_a_process_of_its_own_evaluates_a_database_on_a_disk(tmp_path: Path) -> None:
    large_database.store(tmp_path, items=3000, queries=20)
    measured = in_new_process("-m", "benchmarks.large_database", tmp_path, 1)
    assert measured["wall_seconds"] > 0
    assert 10 < measured["mebibytes_before"] <= measured["mebibytes_peak"]
