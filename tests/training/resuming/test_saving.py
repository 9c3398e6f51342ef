"""When a training saves itself: as often as was asked, unless that would take more than its share of the time."""

import numpy as np
import torch
from torch import nn

from deephash_pipeline.training import (
    ArrayInputs,
    CheckpointFolder,
    CrossEntropy,
    LabelledInputs,
    TrainingParameters,
    TrainingRun,
    train,
)
from deephash_pipeline.training.resuming import continuation

CPU = torch.device("cpu")


class FakeClock:
    """Seconds that pass only where a test says so."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(continuation.time, "monotonic", lambda: self.now)


class TimedSaves(CheckpointFolder):
    """Keeps nothing but the time of each save, which takes a while."""

    def __init__(self, folder, seconds_between, clock, seconds):
        super().__init__(folder, seconds_between)
        self.clock, self.seconds, self.times = clock, seconds, []

    def save(self, state):
        self.times.append(self.clock.now)
        self.clock.now += self.seconds


class TickingLoss(nn.Module):
    """Every step takes a second."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def forward(self, logits, labels):
        self.clock.now += 1
        return CrossEntropy()(logits, labels)


def times_of_saves(tmp_path, monkeypatch, seconds_between, seconds_to_save, steps):
    clock = FakeClock(monkeypatch)
    folder = TimedSaves(tmp_path, seconds_between, clock, seconds_to_save)
    torch.manual_seed(0)
    x, labels = np.zeros((16, 4), np.float32), np.zeros(16, np.int64)
    settings = TrainingParameters(epochs=steps, batch_size=16, learning_rate=0.1, schedule="one_cycle")
    train(
        nn.Linear(4, 3),
        TickingLoss(clock),
        LabelledInputs(ArrayInputs(x, CPU), labels),
        settings,
        TrainingRun("test", checkpoints=folder),
    )
    return folder.times


def test_a_checkpoint_is_made_as_often_as_was_asked_and_at_the_end(tmp_path, monkeypatch):
    assert times_of_saves(tmp_path, monkeypatch, 30, 0, steps=100) == [30, 60, 90, 100]


def test_at_0_seconds_a_checkpoint_is_made_at_every_step_whatever_it_takes(tmp_path, monkeypatch):
    assert len(times_of_saves(tmp_path, monkeypatch, 0, 10, steps=5)) == 6


def test_checkpoints_that_take_long_are_made_less_often_so_that_they_take_2_percent_of_the_time(tmp_path, monkeypatch):
    times = times_of_saves(tmp_path, monkeypatch, 30, 3, steps=1000)
    assert times[0] == 30
    assert np.diff(times[:-1]).min() >= 3 / 0.02
