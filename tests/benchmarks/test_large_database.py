from benchmarks import large_database
from benchmarks.processes import in_new_process


def test_a_process_of_its_own_evaluates_a_database_on_a_disk(tmp_path):
    large_database.store(tmp_path, items=3000, queries=20)
    measured = in_new_process("benchmarks.large_database:measure_stored", str(tmp_path), 1)
    assert measured["seconds"] > 0
    assert 10 < measured["MiB before"] <= measured["MiB at the peak"]
