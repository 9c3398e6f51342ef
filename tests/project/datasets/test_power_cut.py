"""Whatever moment the power fails at, or the disk is full at: a file is read whole, or it is refused."""

import errno
import itertools
import os
from pathlib import Path

import pytest
from kedro.io import DatasetError

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.provenance import Origin
from tests.project.datasets.kinds import text_dataset

NAME = "text.txt"
FORMER, NEW = "former content", "new and longer content"


class Disk:
    """What of a folder survives a power cut: contents that were flushed, and renames once the folder was flushed.

    Attributes:
        states: what may be on the disk, each as name -> content, after every step of a save.
    """

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.flushed = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.renames = []
        self.states = []
        self.fails_at = None
        self.steps = 0
        fsync, replace = os.fsync, Path.replace

        def noted_fsync(descriptor):
            self.step()
            fsync(descriptor)
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            if path.is_dir():
                for old, new in self.renames:
                    self.flushed[new] = self.flushed.pop(old, b"")
                self.renames.clear()
            else:
                self.flushed[path.name] = path.read_bytes()
            self.note()

        def noted_replace(path, target):
            self.step()
            self.renames.append((path.name, Path(target).name))
            done = replace(path, target)
            self.note()
            return done

        monkeypatch.setattr(os, "fsync", noted_fsync)
        monkeypatch.setattr(Path, "replace", noted_replace)

    def step(self):
        self.steps += 1
        if self.steps == self.fails_at:
            raise OSError(errno.ENOSPC, "No space left on device", NAME)

    def note(self):
        """Add all that may be there now: any of the renames that were not flushed may have come to the disk."""
        for kept in itertools.product([False, True], repeat=len(self.renames)):
            state = dict(self.flushed)
            for (old, new), come in zip(self.renames, kept, strict=True):
                if come:
                    state[new] = state.pop(old, b"")
            self.states.append(state)


def save(folder, content):
    dataset = text_dataset((folder / NAME).as_posix())
    dataset.expect("text", Origin("write", parameters={"content": content}))
    dataset.save(content)


def read(folder):
    """Give the content; None if it is refused or not there."""
    try:
        content = text_dataset((folder / NAME).as_posix()).load()
    except (InputError, DatasetError):
        return None
    return content


@pytest.fixture(params=[True, False], ids=["over a former file", "for the first time"])
def folder(tmp_path, request):
    (tmp_path / "disk").mkdir()
    if request.param:
        save(tmp_path / "disk", FORMER)
    yield tmp_path / "disk"


def test_after_a_power_cut_a_file_is_whole_or_refused_and_made_again(folder, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        disk = Disk(folder, patch)
        save(folder, NEW)
    assert len(disk.states) >= 8
    seen = set()
    for at, state in enumerate(disk.states):
        after = tmp_path / f"after-{at}"
        after.mkdir()
        for name, content in state.items():
            (after / name).write_bytes(content)
        seen.add(read(after))
        save(after, NEW)
        assert read(after) == NEW
    assert seen <= {FORMER, NEW, None}
    assert read(folder) == NEW


def test_a_disk_that_is_full_at_any_step_leaves_no_half_file(folder, monkeypatch):
    former = read(folder)
    for fails_at in itertools.count(1):
        with monkeypatch.context() as patch:
            disk = Disk(folder, patch)
            disk.fails_at = fails_at
            try:
                save(folder, NEW)
            except (DatasetError, OSError) as error:
                assert "No space left" in str(error)
            else:
                break
        assert read(folder) in (former, NEW, None)
        assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    assert fails_at >= 5
    assert read(folder) == NEW
