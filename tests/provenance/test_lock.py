"""One run at a time works on a benchmark; what killed runs have left is swept by the next."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import temporary_name
from deephash_pipeline.provenance.lock import RunLock, sweep

TAKES_IT = """
import sys, time
from pathlib import Path
from deephash_pipeline.provenance.lock import RunLock
lock = RunLock(Path(sys.argv[1]))
lock.take()
print("taken", flush=True)
time.sleep(600)
"""


@pytest.fixture
def other(tmp_path):
    """A process that has the lock."""
    process = subprocess.Popen([sys.executable, "-c", TAKES_IT, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "taken\n"
    return process


def test_a_second_run_is_refused_in_one_line_that_names_the_first_until_that_is_killed(tmp_path, other):
    lock = RunLock(tmp_path)
    with pytest.raises(InputError, match=f"another run, process {other.pid}, works on {tmp_path}"):
        lock.take()
    other.kill()
    other.wait()
    # Its file says so, until a run has come to its end.
    assert lock.is_left
    lock.take()
    lock.give_back()
    assert not lock.is_left


def test_given_back_it_leaves_an_empty_file_and_can_be_taken_again(tmp_path):
    for _ in range(3):
        lock = RunLock(tmp_path / "digits")
        lock.take()
        with pytest.raises(InputError, match="another run"):
            RunLock(tmp_path / "digits").take()
        lock.give_back()
        assert [path.read_bytes() for path in (tmp_path / "digits").iterdir()] == [b""]


def test_benchmarks_do_not_wait_for_each_other(tmp_path):
    locks = [RunLock(tmp_path / name) for name in ("digits", "mnist")]
    for lock in locks:
        lock.take()
    for lock in locks:
        lock.give_back()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="give the right to write"):
        RunLock(tmp_path / "digits").take()


def test_a_lock_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "run.lock").symlink_to("/dev/full")
    with pytest.raises(InputError, match=r"run\.lock cannot be written \("):
        RunLock(tmp_path).take()


def test_temporary_files_of_killed_runs_are_swept_and_nothing_else(tmp_path):
    kept = [".gitkeep", "images.npy", "training.digests", ".hidden", "a/.b/codes.npz", "images.npy.provenance.json"]
    # As people name files of their own.
    kept += [".images.8005.npy", "a/.notes.2019", ".backup-1.json", f".labels-{'0a' * 16}.json"]
    kept += [f".git/objects/.tmp.host-{'0a' * 16}.pack"]
    names = ("images.npy", "images.npy", "a/codes.npz", "codes.npz.provenance.json", "a/file")
    swept = [temporary_name(Path(name)).as_posix() for name in names]
    assert len(set(swept)) == 5
    for name in (*kept, *swept):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert {path.relative_to(tmp_path).as_posix() for path in sweep([tmp_path])} == set(swept)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()} == set(kept)
