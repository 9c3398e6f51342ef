"""Checkpoints: no accident makes one that is wrong, or loses the one before."""

import errno
import os
import pickle
import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.training.resuming.checkpoint import CheckpointFolder
from tests.training.resuming.saved_states import a_folder, last, names, same, state

# Damage.


def test_a_checkpoint_cut_anywhere_or_changed_in_any_byte_gives_way_to_the_one_before_with_a_warning(tmp_path, caplog):
    a_folder(tmp_path, 1, 2)
    path = last(tmp_path)
    content = path.read_bytes()
    damaged = [content[:length] for length in range(len(content))]
    damaged += [content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :] for at in range(len(content))]
    for bytes_ in damaged:
        caplog.clear()
        path.write_bytes(bytes_)
        assert same(CheckpointFolder(tmp_path, 0).load(), state(1))
        (record,) = caplog.records
        assert record.levelname == "WARNING"
        assert path.name in record.getMessage()
    path.with_name("checkpoint-000000001.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="delete the folder to start over") as caught:
        CheckpointFolder(tmp_path, 0).load()
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_damaged_checkpoint_does_not_count_as_one_of_the_two_that_are_kept(tmp_path):
    a_folder(tmp_path, 1, 2)
    last(tmp_path).write_bytes(b"garbage")
    folder = CheckpointFolder(tmp_path, 0)
    folder.load()
    folder.save(state(3))
    assert len(names(tmp_path)) == 2
    last(tmp_path).write_bytes(b"garbage")
    assert CheckpointFolder(tmp_path, 0).load().progress["step"] == 1


def test_a_pickle_is_never_run(tmp_path):
    sprung = tmp_path / "sprung"

    class Trap:
        def __reduce__(self):
            return Path.touch, (sprung,)

    folder = a_folder(tmp_path / "checkpoints", 1)
    last(folder.folder).write_bytes(pickle.dumps(Trap()))
    with pytest.raises(InputError):
        folder.load()
    assert not sprung.exists()


def test_a_checkpoint_of_another_format_is_not_guessed_at(tmp_path, monkeypatch):
    monkeypatch.setattr("deephash_pipeline.training.resuming.checkpoint.CHECKPOINT_FORMAT", 0)
    folder = a_folder(tmp_path, 1)
    monkeypatch.undo()
    with pytest.raises(InputError):
        folder.load()


def test_tensors_alone_as_earlier_versions_have_left_them_are_passed_over_and_swept(tmp_path):
    safetensors.torch.save_file({"module.weight": torch.ones(2)}, tmp_path / "checkpoint-000000007.safetensors")
    folder = CheckpointFolder(tmp_path, 0)
    assert folder.load() is None
    folder.save(state(1))
    folder.save(state(2))
    assert names(tmp_path) == [f"checkpoint-00000000{number}.safetensors" for number in (8, 9)]


# Accidents while one is written or removed.


class Snapshots:
    """Copies a folder before and after each thing that is done to a file in it: what a process killed there leaves."""

    def __init__(self, folder, copies, monkeypatch):
        self.folder, self.copies, self.taken = folder, copies, 0
        self.events = []
        fsync, replace, unlink, write = os.fsync, Path.replace, Path.unlink, Path.open

        def noted_open(path, mode="r", *arguments, **options):
            file = write(path, mode, *arguments, **options)
            self.take(f"open {path.name}") if "w" in mode else None
            return file

        def noted_fsync(descriptor):
            fsync(descriptor)
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}")) if Path("/proc/self/fd").exists() else folder
            self.take(f"fsync {path.name}")

        def noted_replace(path, target):
            result = replace(path, target)
            self.take(f"rename {Path(target).name}")
            return result

        def noted_unlink(path, missing_ok=False):
            there = path.exists()
            unlink(path, missing_ok)
            self.take(f"unlink {path.name}") if there else None

        monkeypatch.setattr(Path, "open", noted_open)
        monkeypatch.setattr(os, "fsync", noted_fsync)
        monkeypatch.setattr(Path, "replace", noted_replace)
        monkeypatch.setattr(Path, "unlink", noted_unlink)

    def take(self, event):
        self.events.append(event)
        shutil.copytree(self.folder, self.copies / f"{self.taken:04d}")
        self.taken += 1

    def __iter__(self):
        return iter(sorted(self.copies.iterdir()))


def test_a_process_killed_at_any_file_operation_leaves_the_checkpoint_before_or_the_new_one(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        snapshots = Snapshots(tmp_path / "checkpoints", tmp_path / "copies", patched)
        a_folder(tmp_path / "checkpoints", 1, 2, 3, 4)
    steps = []
    for copy in snapshots:
        found = CheckpointFolder(copy, 0).load()
        steps.append(found.progress["step"] if found else 0)
        # And the next process goes on from it as if nothing had been.
        folder = CheckpointFolder(copy, 0)
        folder.load()
        folder.save(state(9))
        folder.save(state(10))
        assert CheckpointFolder(copy, 0).load().progress["step"] == 10
        assert len(names(copy)) == 2
    assert steps == sorted(steps)
    assert set(steps) == {0, 1, 2, 3, 4}


def test_a_file_is_flushed_before_it_gets_its_name_and_the_name_after(tmp_path, monkeypatch):
    if not Path("/proc/self/fd").exists():
        pytest.skip("needs Linux to tell what is flushed")
    with monkeypatch.context() as patched:
        snapshots = Snapshots(tmp_path / "checkpoints", tmp_path / "copies", patched)
        a_folder(tmp_path / "checkpoints", 1)
    written, flushed, *named = snapshots.events
    assert written.removeprefix("open ") == flushed.removeprefix("fsync ")
    assert named == ["rename checkpoint-000000001.safetensors", "fsync checkpoints"]


def test_a_process_killed_while_it_removes_everything_finds_the_last_one_or_nothing(tmp_path, monkeypatch):
    folder = a_folder(tmp_path / "checkpoints", 1, 2)
    with monkeypatch.context() as patched:
        snapshots = Snapshots(folder.folder, tmp_path / "copies", patched)
        folder.clear()
    found = [CheckpointFolder(copy, 0).load() for copy in snapshots]
    assert [state.progress["step"] if state else 0 for state in found] == [2, 0]
    assert names(folder.folder) == []


def test_a_full_disk_is_reported_in_one_line_and_the_checkpoints_before_stay(tmp_path, monkeypatch):
    folder = a_folder(tmp_path, 1, 2)
    before = names(tmp_path)

    def no_space(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(InputError, match="No space left on device") as caught:
        folder.save(state(3))
    assert str(tmp_path) in str(caught.value)
    assert names(tmp_path) == before
    assert folder.load().progress["step"] == 2
