"""When a training saves itself: as often as was asked, unless that would take more than its share of the time."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from deephash_pipeline.training import (
    ArrayInputs,
    CheckpointFolder,
    LabelledInputs,
    TrainingParameters,
    TrainingRun,
    train,
)
from deephash_pipeline.training.resuming import continuation


def times_of_saves(tmp_path, monkeypatch, seconds_between, seconds_to_save, steps):
    """When a training saves itself, each of whose steps takes a second."""
    now, times = 0.0, []
    folder = CheckpointFolder(tmp_path, seconds_between)

    def save(state):
        nonlocal now
        times.append(now)
        now += seconds_to_save

    def tick(logits, labels):
        nonlocal now
        now += 1
        return functional.cross_entropy(logits, labels)

    monkeypatch.setattr(continuation.time, "monotonic", lambda: now)
    monkeypatch.setattr(folder, "save", save)
    inputs = LabelledInputs(ArrayInputs(np.zeros((16, 4), np.float32), torch.device("cpu")), np.zeros(16, np.int64))
    settings = TrainingParameters(epochs=steps, batch_size=16, learning_rate=0.1, schedule="one_cycle")
    train(nn.Linear(4, 3), tick, inputs, settings, TrainingRun("test", checkpoints=folder))
    return times


def test_a_checkpoint_is_made_as_often_as_was_asked_and_at_the_end(tmp_path, monkeypatch):
    assert times_of_saves(tmp_path, monkeypatch, 30, 0, steps=100) == [30, 60, 90, 100]


def test_at_0_seconds_a_checkpoint_is_made_at_every_step_whatever_it_takes(tmp_path, monkeypatch):
    assert len(times_of_saves(tmp_path, monkeypatch, 0, 10, steps=5)) == 6


def test_checkpoints_that_take_long_are_made_less_often_so_that_they_take_2_percent_of_the_time(tmp_path, monkeypatch):
    times = times_of_saves(tmp_path, monkeypatch, 30, 3, steps=1000)
    assert times[0] == 30
    assert np.diff(times[:-1]).min() >= 3 / 0.02
