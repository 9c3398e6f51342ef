"""Checkpoints: every bit comes back."""

import json
import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deephash_pipeline.training.resuming.checkpoint import CheckpointFolder, TrainingState, first_difference
from tests.training.resuming.saved_states import a_folder, content_of, last, names, same, state

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


# What is stored.


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_come_back_bit_for_bit(tmp_path, dtype):
    generator = torch.Generator().manual_seed(0)
    tensor = torch.randint(0, 256, (2, 3, 4, 4 * dtype.itemsize), dtype=torch.uint8, generator=generator)
    tensor = (tensor % 2).bool() if dtype == torch.bool else tensor.view(dtype)
    parts = {"tensor": tensor, "transposed": tensor.transpose(1, 2), "scalar": tensor[0, 0, 0, 0], "empty": tensor[:0]}
    value = {name: part.clone() for name, part in parts.items()}
    stored = TrainingState(value, {"finished": False}, {})
    CheckpointFolder(tmp_path, 0).save(stored)
    assert same(CheckpointFolder(tmp_path, 0).load(), stored)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=JSON_VALUES)
def test_values_come_back_to_the_last_digit(tmp_path, value):
    folder = CheckpointFolder(tmp_path, 0)
    folder.save(state(value=value))
    assert repr(folder.load().progress["value"]) == repr(value)


def test_a_checkpoint_holds_the_commit_and_the_configuration_with_its_hash(tmp_path):
    a_folder(tmp_path, 1)
    content = content_of(last(tmp_path))
    assert content["provenance"] == {"git_commit": "0123abc"}
    assert content["configuration"] == {"seed": 42, "rate": 0.1}
    assert len(content["configuration_sha256"]) == 64
    other = TrainingState({}, {"finished": False}, {"seed": 43, "rate": 0.1})
    CheckpointFolder(tmp_path, 0).save(other)
    assert content_of(last(tmp_path))["configuration_sha256"] != content["configuration_sha256"]


def test_the_last_two_are_kept(tmp_path):
    folder = a_folder(tmp_path, 1, 2, 3, 4)
    assert len(names(tmp_path)) == 2
    assert folder.load().progress["step"] == 4
    last(tmp_path).unlink()
    assert folder.load().progress["step"] == 3


def test_what_else_lies_in_the_folder_stays(tmp_path):
    for name in ("notes.txt", "checkpoint-old.safetensors", "checkpoint-1.safetensors"):
        (tmp_path / name).write_text("mine")
    folder = a_folder(tmp_path, 1, 2, 3)
    folder.clear()
    assert names(tmp_path) == ["checkpoint-1.safetensors", "checkpoint-old.safetensors", "notes.txt"]


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


def test_what_other_code_has_left_is_not_gone_on_with_and_stays_until_there_is_more(tmp_path):
    CheckpointFolder(tmp_path, 0, {"code": "one"}).save(state(1))
    assert CheckpointFolder(tmp_path, 0).load().progress["step"] == 1
    assert CheckpointFolder(tmp_path, 0, {"code": "one"}).load().progress["step"] == 1
    other = CheckpointFolder(tmp_path, 0, {"code": "other"})
    before = names(tmp_path)
    assert other.load() is None
    assert names(tmp_path) == before
    other.save(state(5))
    other.save(state(6))
    assert len(names(tmp_path)) == 2
    assert other.load().progress["step"] == 6
    assert CheckpointFolder(tmp_path, 0, {"code": "one"}).load() is None
