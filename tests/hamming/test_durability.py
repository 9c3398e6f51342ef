"""What survives `kill -9`, damage, and two processes at a time."""

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming import HammingIndex, store
from deephash_pipeline.hamming.ledger import Ledger
from deephash_pipeline.hamming.replacing import replacing_index
from tests.hamming.writer import CODE_LENGTH, change_until_killed, code_of, codes_of, create_and_be_killed, forget

KILLS = int(os.environ.get("DEEPHASH_KILLS", "10"))
ROOT = Path(__file__).resolve().parent.parent.parent


# Writers are forked from a process that has imported all they need and has no threads.
PROCESSES = multiprocessing.get_context("forkserver")
pytestmark = pytest.mark.usefixtures("fork_server")


def run_and_kill(folder, seed, messages, seconds):
    """Let a writer work until it has said something so many times, kill it a moment later, and return what it said."""
    receiver, sender = PROCESSES.Pipe(duplex=False)
    writer = PROCESSES.Process(target=change_until_killed, args=(str(folder), seed, sender))
    writer.start()
    sender.close()
    said = [receiver.recv() for _ in range(messages)]
    time.sleep(seconds)
    writer.kill()
    with suppress(EOFError):
        while True:
            said.append(receiver.recv())
    writer.join()
    assert writer.exitcode == -signal.SIGKILL
    return [(action, set(ids)) for action, ids in said]


def exit_code_of(target, *arguments):
    process = PROCESSES.Process(target=target, args=arguments)
    process.start()
    process.join()
    return process.exitcode


def test_a_killed_writer_loses_nothing_that_it_said_was_stored(tmp_path):
    folder = tmp_path / "index"
    HammingIndex.create(folder, CODE_LENGTH).close()
    rng = np.random.default_rng(17)
    certain = set()
    for kill in range(KILLS):
        maybe = set()
        for action, ids in run_and_kill(folder, kill, int(rng.integers(1, 14)), float(rng.uniform(0, 0.03))):
            if action in ("adding", "removing"):
                maybe, certain = ids, certain - ids
            else:
                certain, maybe = (certain | ids if action == "added" else certain - ids), set()
        with HammingIndex.open(folder) as index:
            present = list(index)
            assert len(present) == len(set(present)) == len(index)
            # What was under way has happened as a whole or not at all.
            assert set(present) in (certain, certain | maybe)
            certain = set(present)
            for item in present[:: max(1, len(present) // 20)]:
                np.testing.assert_array_equal(index.get(item).code, code_of(item)[0])
                assert index.get(item).metadata == {"label": item % 3}
                assert index.search(code_of(item), 1)[0][0][1] == 0
            named = {name for _, name, _, _ in index._store.ledger.segments()}
            assert {path.name for path in (folder / "segments").iterdir()} == named
    assert certain


@pytest.mark.parametrize("last", ["_make_tables", "transaction", "close"])
def test_an_index_whose_making_was_killed_is_not_there_and_can_be_made(tmp_path, last):
    assert exit_code_of(create_and_be_killed, str(tmp_path), last) == 9
    with pytest.raises(InputError, match="has no index"):
        HammingIndex.open(tmp_path)
    with HammingIndex.create(tmp_path, CODE_LENGTH) as index:
        index.add([1], code_of(1))
    assert list(HammingIndex.open(tmp_path, read_only=True)) == [1]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux to tell what is flushed")
def test_a_segment_and_its_name_are_flushed_before_the_ledger_names_it(tmp_path, monkeypatch):
    flushed, fsync, named = [], os.fsync, Ledger.replace_segments

    def noted_fsync(descriptor):
        fsync(descriptor)
        flushed.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    def noted_replace(ledger, *arguments):
        (segment,) = (tmp_path / "index" / "segments").iterdir()
        assert flushed[-2:] == [segment, segment.parent]
        named(ledger, *arguments)
        flushed.clear()

    with HammingIndex.create(tmp_path / "index", CODE_LENGTH) as index:
        monkeypatch.setattr(os, "fsync", noted_fsync)
        monkeypatch.setattr(Ledger, "replace_segments", noted_replace)
        flushed.append(tmp_path)
        index.add(range(5000), codes_of(range(5000)))
    assert flushed == []


@pytest.fixture
def folder(tmp_path):
    with HammingIndex.create(tmp_path / "index", CODE_LENGTH) as index:
        index.add(range(5000), codes_of(range(5000)), {"label": [item % 3 for item in range(5000)]})
    return tmp_path / "index"


def test_a_segment_with_a_flipped_bit_anywhere_or_cut_short_or_missing_is_refused_by_name(folder):
    (segment,) = (folder / "segments").iterdir()
    content = segment.read_bytes()
    flipped = np.frombuffer(content, dtype=np.uint8) ^ np.zeros((3, len(content)), dtype=np.uint8)
    flipped[[0, 1, 2], (np.array([0.001, 0.3, 0.999]) * len(content)).astype(int)] ^= 4
    for left in (*flipped, content[:-1], b""):
        segment.write_bytes(left)
        for read_only in (False, True):
            with pytest.raises(InputError, match=f"{segment.name} is damaged"):
                HammingIndex.open(folder, read_only=read_only)
    segment.unlink()
    with pytest.raises(InputError, match=f"{segment.name} is missing"):
        HammingIndex.open(folder)


@pytest.mark.parametrize("code", [sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_BUSY])
def test_a_folder_that_cannot_be_written_is_not_called_damaged(folder, code, monkeypatch):
    def refuse(*_):
        error = sqlite3.OperationalError("attempt to write a readonly database")
        error.sqlite_errorcode = code
        raise error

    monkeypatch.setattr("deephash_pipeline.hamming.store.Ledger.settings", refuse)
    remedy = "wait until that other program" if code == sqlite3.SQLITE_BUSY else "give the right to write"
    with pytest.raises(InputError, match=f"cannot be written .* {remedy}"):
        HammingIndex.open(folder, read_only=True)


def test_a_lock_that_cannot_be_taken_is_refused_in_a_line(folder, monkeypatch):
    with monkeypatch.context() as full, pytest.raises(InputError, match=rf"{folder} cannot be written \(No space"):
        full.setattr(os, "pwrite", Mock(side_effect=OSError(28, "No space left on device")))
        HammingIndex.open(folder)
    HammingIndex.open(folder).close()
    with pytest.raises(InputError, match=r"cannot be written \(Not a directory\)"):
        HammingIndex.create(folder / "writer.lock" / "x", 48)
    (folder / "writer.lock").unlink()
    (folder / "writer.lock").mkdir()
    with pytest.raises(InputError, match=f"{folder} cannot be written"):
        HammingIndex.open(folder)


def test_a_second_writer_is_refused_until_the_first_is_done(folder):
    with HammingIndex.open(folder):
        with pytest.raises(InputError, match=f"is being written by process {os.getpid()}"):
            HammingIndex.open(folder)
        reader = HammingIndex.open(folder, read_only=True)
        for change in (lambda: reader.add([1], code_of(1)), lambda: reader.remove([1]), reader.compact):
            with pytest.raises(InputError, match="is open for reading"):
                change()
        reader.close()
    HammingIndex.open(folder).close()


def test_a_reader_in_another_process_sees_every_change_at_its_next_search(folder):
    program = f"""
import sys
from deephash_pipeline.hamming import HammingIndex
from tests.hamming.writer import code_of
index = HammingIndex.open({str(folder)!r}, read_only=True)
print("ready", flush=True)
for line in sys.stdin:
    print(len(index), index.search(code_of(int(line)), 1)[0], flush=True)
"""
    command = [sys.executable, "-c", program]
    with (
        HammingIndex.open(folder) as index,
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader,
    ):
        assert reader.stdout.readline() == "ready\n"

        def ask(item):
            print(item, file=reader.stdin, flush=True)
            return reader.stdout.readline()

        index.add([7000], code_of(7000))
        assert ask(7000) == "5001 [(7000, 0)]\n"
        index.remove([7000, 3])
        assert ask(3).startswith("4999 [(")
        index.compact()
        assert ask(5) == "4999 [(5, 0)]\n"
        index.add(range(8000, 14_000), codes_of(range(8000, 14_000)))
        assert ask(13_000) == "10999 [(13000, 0)]\n"
        reader.stdin.close()


def test_an_item_that_another_process_forgets_within_a_search_is_not_taken_for_one_without_metadata(
    folder, monkeypatch
):
    with HammingIndex.open(folder) as index:
        index.add([7000, 7001], code_of(7000).repeat(2, axis=0), {"label": ["cat", None]})
    reader = HammingIndex.open(folder, read_only=True)
    holds = reader._columns.holds

    def holds_after_a_change(*condition):
        monkeypatch.undo()
        assert exit_code_of(forget, str(folder), 7000) == 0
        return holds(*condition)

    for ask in (
        lambda: reader.search(code_of(7000), 1, {"label": None})[0],
        lambda: reader.within(code_of(7000), 0, {"label": None})[0],
        lambda: reader.search_by_id(7001, 1, {"label": None})[0],
    ):
        with HammingIndex.open(folder) as index:
            index.add([7000], code_of(7000), {"label": ["cat"]}, replace=True)
        monkeypatch.setattr(reader._columns, "holds", holds_after_a_change)
        assert 7000 not in [item for item, _ in ask()]
    reader.close()


def test_a_reader_follows_a_merge_as_soon_as_it_can_and_is_told_of_what_was_forgotten(folder, monkeypatch):
    with HammingIndex.open(folder) as index, HammingIndex.open(folder, read_only=True) as reader:
        batches = [asked.batches(1000) for asked in (index, reader)]
        for each in batches:
            next(each)
        index.remove([1500])
        index.compact()
        with monkeypatch.context() as patch, pytest.raises(InputError, match="seg cannot be read"):
            patch.setattr(store, "read_segment", Mock(side_effect=OSError(24, "Too many open files", "seg")))
            len(reader)
        assert len(reader) == 4999
        for each in batches:
            with pytest.raises(InputError, match="has forgotten items that were removed while"):
                next(each)
        index.remove([1501])
        monkeypatch.setattr(Ledger, "columns", lambda _: index.compact())
        assert reader.info()["bytes_on_disk"] > 8 * 5000


def test_an_item_that_is_replaced_within_a_search_for_its_like_is_found(monkeypatch):
    index = HammingIndex(CODE_LENGTH)
    index.add([1, 2], codes_of([1, 2]))
    searched = index._searched
    change = threading.Thread(target=index.add, args=([1], code_of(3)), kwargs={"replace": True})

    def searched_and_changed(where):
        found = searched(where)
        change.start()
        change.join(0.2)
        return found

    monkeypatch.setattr(index, "_searched", searched_and_changed)
    assert index.search_by_id(1, 5).ids.tolist() == [[2]]
    change.join()


def test_what_is_no_index_is_refused_without_a_trace(tmp_path):
    (tmp_path / "cat.png").touch()
    for place, message in ((tmp_path, r"has cat\.png"), (tmp_path / "cat.png", "is a file: give the folder")):
        with pytest.raises(InputError, match=message), replacing_index(place):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["cat.png"]


@pytest.mark.parametrize("items", [1, 6000])
def test_a_change_that_cannot_be_written_leaves_everything_as_it_was(folder, items, monkeypatch):
    ids = range(10_000, 10_000 + items)
    with HammingIndex.open(folder) as index:
        with monkeypatch.context() as patch:

            def fail(*_arguments):
                raise OSError(28, "No space left on device")

            patch.setattr(Ledger, "set", fail)
            with pytest.raises(InputError, match="No space left on device"):
                index.add(ids, codes_of(ids))
        assert len(list((folder / "segments").iterdir())) == 1
        assert list(index) == list(range(5000))
        index.add(ids, codes_of(ids))
        assert list(index) == [*range(5000), *ids]
    with HammingIndex.open(folder) as index:
        assert list(index) == [*range(5000), *ids]
        assert len(list((folder / "segments").iterdir())) == 1


def test_searches_go_on_in_threads_while_another_adds_and_removes(folder):
    with HammingIndex.open(folder) as index, ThreadPoolExecutor(2) as pool:
        stop = threading.Event()

        def search():
            searches = 0
            while not stop.is_set() or not searches:
                answers = index.search(codes_of([7, 4000]), 20, where={"label": [1, 2]} if searches % 2 else None)
                assert (np.diff(answers.distances, axis=1) >= 0).all()
                assert answers[0][0] == (7, 0)
                searches += 1
            return searches

        running = [pool.submit(search) for _ in range(2)]
        for item in range(20_000, 20_100):
            index.add([item], code_of(item), {"label": [1]})
            index.remove([item - 19_900])
        index.compact()
        stop.set()
        assert all(done.result() for done in running)


COMPACTED = """
import resource, sys
from deephash_pipeline.hamming import HammingIndex
with HammingIndex.open(sys.argv[1]) as index:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    index.compact()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_compacting_copies_features_without_holding_them(tmp_path):
    width, rows = 2048, 40_000
    random = np.random.default_rng(0)
    features = random.normal(size=(rows, width)).astype(np.float32)
    codes = random.integers(0, 256, (rows, 8), dtype=np.uint8)
    with HammingIndex.create(tmp_path / "x", 64, width, "int8") as index:
        for some in (slice(0, rows // 2), slice(rows // 2, rows)):
            index.add(range(some.start, some.stop), codes[some], features=features[some])
        index.add([rows], codes[:1], features=features[:1])
        index.remove([3, rows - 1])
        kept = [0, 1, 2, 4, rows // 2, rows - 2, rows]
        expected = index.features_of(kept)
    done = subprocess.run(
        [sys.executable, "-c", COMPACTED, tmp_path / "x"], capture_output=True, text=True, check=True, timeout=300
    )
    # Of 80 MiB of features; a piece of 16,384 rows is 32.
    assert int(done.stdout) < 64 * 1024
    with HammingIndex.open(tmp_path / "x", read_only=True) as index:
        assert index.info()["segments"] == 1 and index.info()["removed"] == 0
        np.testing.assert_array_equal(index.features_of(kept), expected)
