"""Checkpoints: every bit comes back, and no accident makes one that is wrong, or loses the one before."""

import errno
import json
import math
import os
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deephash_pipeline.errors import InputError
from deephash_pipeline.training.checkpoint import CheckpointFolder, TrainingState, first_difference

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def state(step=1, finished=False, **values):
    tensors = {"module.weight": torch.full((2, 3), float(step)), "total.loss": torch.tensor(0.1 * step)}
    return TrainingState(tensors, {"step": step, "finished": finished, **values}, {"seed": 42, "rate": 0.1})


def a_folder(path: Path, *steps: int) -> CheckpointFolder:
    folder = CheckpointFolder(path, 0, {"git_commit": "0123abc"})
    for step in steps:
        folder.save(state(step))
    return folder


def names(path: Path) -> list[str]:
    return sorted(file.name for file in path.iterdir())


def same(a: TrainingState, b: TrainingState) -> bool:
    """Whether two states agree in every bit; NaN is NaN here."""
    return (
        a.tensors.keys() == b.tensors.keys()
        and all(a.tensors[name].dtype == b.tensors[name].dtype for name in a.tensors)
        and all(torch.equal(bits(a.tensors[name]), bits(b.tensors[name])) for name in a.tensors)
        and repr(a.progress) == repr(b.progress)
        and repr(a.configuration) == repr(b.configuration)
    )


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def last(path: Path, suffix: str) -> Path:
    return max(path.glob(f"checkpoint-*{suffix}"))


# What is stored.


def test_where_there_is_nothing_there_is_no_checkpoint(tmp_path):
    assert CheckpointFolder(tmp_path / "not there", 0).load() is None
    assert not (tmp_path / "not there").exists()


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_come_back_bit_for_bit(tmp_path, dtype):
    generator = torch.Generator().manual_seed(0)
    tensor = torch.randint(0, 256, (2, 3, 4, 4 * dtype.itemsize), dtype=torch.uint8, generator=generator)
    tensor = (tensor % 2).bool() if dtype == torch.bool else tensor.view(dtype)
    parts = {"tensor": tensor, "transposed": tensor.transpose(1, 2), "scalar": tensor[0, 0, 0, 0], "empty": tensor[:0]}
    held = {name: part.clone() for name, part in parts.items()}
    stored = TrainingState(held, {"finished": False}, {})
    CheckpointFolder(tmp_path, 0).save(stored)
    assert same(CheckpointFolder(tmp_path, 0).load(), stored)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=JSON_VALUES)
def test_values_come_back_to_the_last_digit(tmp_path, value):
    folder = CheckpointFolder(tmp_path, 0)
    folder.save(state(value=value))
    assert repr(folder.load().progress["value"]) == repr(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 5e-324, 0.1 + 0.2, 2**70])
def test_numbers_that_are_not_finite_or_hardly_there_survive(tmp_path, value):
    folder = CheckpointFolder(tmp_path, 0)
    folder.save(state(history=[{"loss": value}]))
    assert repr(folder.load().progress["history"]) == repr([{"loss": value}])


def test_a_checkpoint_holds_the_commit_and_the_configuration_with_its_hash(tmp_path):
    a_folder(tmp_path, 1)
    content = json.loads(last(tmp_path, ".json").read_text())["content"]
    assert content["provenance"] == {"git_commit": "0123abc"}
    assert content["configuration"] == {"seed": 42, "rate": 0.1}
    assert len(content["configuration_sha256"]) == 64
    other = TrainingState({}, {"finished": False}, {"seed": 43, "rate": 0.1})
    CheckpointFolder(tmp_path, 0).save(other)
    assert (
        json.loads(last(tmp_path, ".json").read_text())["content"]["configuration_sha256"]
        != (content["configuration_sha256"])
    )


def test_the_last_two_are_kept(tmp_path):
    folder = a_folder(tmp_path, 1, 2, 3, 4)
    assert len(names(tmp_path)) == 4
    assert folder.load().progress["step"] == 4
    last(tmp_path, ".json").unlink()
    assert folder.load().progress["step"] == 3


def test_what_else_lies_in_the_folder_stays(tmp_path):
    for name in ("notes.txt", "checkpoint-old.json", "checkpoint-1.safetensors"):
        (tmp_path / name).write_text("mine")
    folder = a_folder(tmp_path, 1, 2, 3)
    folder.clear()
    assert names(tmp_path) == ["checkpoint-1.safetensors", "checkpoint-old.json", "notes.txt"]


# Damage.


def truncate(path):
    path.write_bytes(path.read_bytes()[:-7])


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[-3 if path.suffix == ".safetensors" else content.index(b'"step": ') + 8] ^= 1
    path.write_bytes(content)


def garble(path):
    path.write_bytes(bytes(range(256)) * 10)


def empty(path):
    path.write_bytes(b"")


def remove(path):
    path.unlink()


def replace_by_json_of_another_kind(path):
    path.write_text("[1, 2, 3]")


@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
@pytest.mark.parametrize(
    "damage", [truncate, flip_a_bit, garble, empty, remove, replace_by_json_of_another_kind], ids=lambda f: f.__name__
)
def test_a_damaged_checkpoint_gives_way_to_the_one_before_with_a_warning(tmp_path, caplog, damage, suffix):
    a_folder(tmp_path, 1, 2)
    damage(last(tmp_path, suffix))
    assert same(CheckpointFolder(tmp_path, 0).load(), state(1))
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "checkpoint-000000002" in record.getMessage()


@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_a_checkpoint_that_is_cut_anywhere_or_changed_in_any_byte_is_never_taken_for_another(tmp_path, caplog, suffix):
    a_folder(tmp_path, 1, 2)
    path = last(tmp_path, suffix)
    content = path.read_bytes()
    damaged = [content[:length] for length in range(len(content))]
    damaged += [content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :] for at in range(len(content))]
    states = (state(1), state(2))
    found = []
    for bytes_ in damaged:
        path.write_bytes(bytes_)
        loaded = CheckpointFolder(tmp_path, 0).load()
        found.append(next(number for number, whole in enumerate(states, start=1) if same(loaded, whole)))
    # Space between the values of JSON, and its last brackets, are all that may differ unnoticed.
    assert found.count(2) < (1 if suffix == ".safetensors" else len(damaged) / 4)


@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_if_all_are_damaged_one_line_names_the_folder_and_the_remedy(tmp_path, suffix):
    a_folder(tmp_path, 1, 2)
    for path in tmp_path.glob(f"*{suffix}"):
        truncate(path)
    with pytest.raises(InputError, match="delete the folder to start over") as caught:
        CheckpointFolder(tmp_path, 0).load()
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_damaged_checkpoint_does_not_count_as_one_of_the_two_that_are_kept(tmp_path):
    a_folder(tmp_path, 1, 2)
    garble(last(tmp_path, ".safetensors"))
    folder = CheckpointFolder(tmp_path, 0)
    folder.load()
    folder.save(state(3))
    assert len(names(tmp_path)) == 4
    garble(last(tmp_path, ".safetensors"))
    assert CheckpointFolder(tmp_path, 0).load().progress["step"] == 1


@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_a_pickle_is_never_run(tmp_path, suffix):
    sprung = tmp_path / "sprung"

    class Trap:
        def __reduce__(self):
            return Path.touch, (sprung,)

    folder = a_folder(tmp_path / "checkpoints", 1)
    last(folder.folder, suffix).write_bytes(pickle.dumps(Trap()))
    with pytest.raises(InputError):
        folder.load()
    assert not sprung.exists()


def test_a_checkpoint_of_another_format_is_not_guessed_at(tmp_path, monkeypatch):
    monkeypatch.setattr("deephash_pipeline.training.checkpoint.FORMAT", 0)
    folder = a_folder(tmp_path, 1)
    monkeypatch.undo()
    with pytest.raises(InputError):
        folder.load()


# Accidents while one is written or removed.


class Snapshots:
    """Copies a folder before and after each thing that is done to a file in it: what a process killed there leaves."""

    def __init__(self, folder: Path, copies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.copies, self.taken = folder, copies, 0
        self.events: list[str] = []
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

    def take(self, event: str) -> None:
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
        assert len(names(copy)) == 4
    assert steps == sorted(steps)
    assert set(steps) == {0, 1, 2, 3, 4}


def test_a_file_is_flushed_before_it_gets_its_name_and_the_name_after_and_the_json_comes_last(tmp_path, monkeypatch):
    if not Path("/proc/self/fd").exists():
        pytest.skip("needs Linux to tell what is flushed")
    with monkeypatch.context() as patched:
        snapshots = Snapshots(tmp_path / "checkpoints", tmp_path / "copies", patched)
        a_folder(tmp_path / "checkpoints", 1)
    tensors, document = "checkpoint-000000001.safetensors", "checkpoint-000000001.json"
    assert snapshots.events == [
        step
        for name in (tensors, document)
        for step in (f"open .{name}.partial", f"fsync .{name}.partial", f"rename {name}", "fsync checkpoints")
    ]


def test_a_process_killed_while_it_removes_everything_finds_the_last_one_or_nothing(tmp_path, monkeypatch):
    folder = a_folder(tmp_path / "checkpoints", 1, 2)
    with monkeypatch.context() as patched:
        snapshots = Snapshots(folder.folder, tmp_path / "copies", patched)
        folder.clear()
    found = [CheckpointFolder(copy, 0).load() for copy in snapshots]
    assert [state.progress["step"] if state else 0 for state in found] == [2, 2, 0, 0]
    assert names(folder.folder) == []


def test_what_was_half_written_is_written_again_under_another_number(tmp_path):
    folder = a_folder(tmp_path, 1, 2)
    last(tmp_path, ".json").unlink()
    (tmp_path / ".checkpoint-000000003.safetensors.partial").write_bytes(b"half")
    folder.load()
    folder.save(state(2))
    assert names(tmp_path) == [
        f"checkpoint-00000000{number}.{suffix}" for number in (1, 3) for suffix in ("json", "safetensors")
    ]


def test_a_full_disk_is_told_in_one_line_and_the_checkpoints_before_stay(tmp_path, monkeypatch):
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


# Comparing configurations.


@settings(deadline=None)
@given(value=JSON_VALUES)
def test_a_configuration_does_not_differ_from_itself_as_stored(value):
    configuration = {"a": value, "b": 1}
    assert first_difference(configuration, json.loads(json.dumps(configuration))) is None


@pytest.mark.parametrize(
    ("now", "stored", "name"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, "b"),
        ({"a": 1}, {"a": 1, "b": None}, "b"),
        ({"a": 1, "b": 0}, {"a": 1}, "b"),
        ({"a": 0.1}, {"a": 0.1 + 1e-17 + 1e-16}, "a"),
        ({"a": math.nan}, {"a": math.inf}, "a"),
        ({"a": [1, 2]}, {"a": [2, 1]}, "a"),
        ({"a": True}, {"a": 1}, "a"),
        ({"b": 1, "a": 1}, {"b": 2, "a": 2}, "a"),
    ],
)
def test_the_first_parameter_that_differs_is_named(now, stored, name):
    assert first_difference(now, stored) == name


def test_a_tuple_is_the_list_that_json_makes_of_it():
    assert first_difference({"a": (1, 2)}, {"a": [1, 2]}) is None
