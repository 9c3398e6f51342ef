"""An index that is open for writing while its process forks."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming import HammingIndex
from tests.hamming.writer import CODE_LENGTH, code_of, codes_of

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ["changes", "lock", "replaced", "in_memory", "processes", "data_loader", "service", "run_lock"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_forked_process_reads_an_index_and_leaves_its_changes_to_the_one_that_opened_it(program, tmp_path):
    # Of its own process, which has no threads of other tests.
    command = [sys.executable, "-m", "tests.hamming.forked", program, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_two_threads_add_and_remove_in_one_index_and_nothing_is_lost(tmp_path):
    def change(first):
        for item in range(first, first + 60):
            index.add([item], code_of(item), {"label": [item]})
            if item % 3 == 0:
                index.remove([item])

    with HammingIndex.create(tmp_path / "index", CODE_LENGTH) as index, ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(change, first) for first in (0, 1000, 2000)]:
            done.result()
    with HammingIndex.open(tmp_path / "index") as index:
        left = [item for first in (0, 1000, 2000) for item in range(first, first + 60) if item % 3]
        assert sorted(index) == left
        assert [item.metadata["label"] for item in index.items(left)] == left


def test_of_two_threads_that_open_one_index_for_writing_one_is_refused(tmp_path):
    HammingIndex.create(tmp_path / "index", CODE_LENGTH).close()

    def opened():
        try:
            return HammingIndex.open(tmp_path / "index")
        except InputError as error:
            return str(error)

    with ThreadPoolExecutor(2) as pool:
        found = [each.result() for each in [pool.submit(opened) for _ in range(2)]]
    [index] = [each for each in found if isinstance(each, HammingIndex)]
    [said] = [each for each in found if isinstance(each, str)]
    assert "is being written by process" in said
    index.add(range(5), codes_of(range(5)))
    index.close()
