"""SIGTERM and Ctrl-C end a training after a whole step, with what it has learned kept; a second one at once."""

import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from torch import nn

from deephash_pipeline.training import (
    ArrayInputs,
    CheckpointFolder,
    CrossEntropy,
    LabelledInputs,
    NoFurtherEpoch,
    TrainingInterrupted,
    TrainingParameters,
    TrainingRun,
    train,
)
from deephash_pipeline.training.resuming import interruption as interruption_module
from deephash_pipeline.training.resuming.interruption import stop_requests
from tests.training.resuming.saved_states import content_of, last

CPU = torch.device("cpu")
SIGNALS = [signal.SIGTERM, signal.SIGINT]


# Says "stepping" in its second step, "noted" when a signal has been, and dawdles then.
SCRIPT = """
import signal, sys, time
import numpy as np, torch
from pathlib import Path
from deephash_pipeline.training import *

class Loss(CrossEntropy):
    steps = 0

    def forward(self, logits, labels):
        self.steps += 1
        if self.steps == 2:
            print("stepping", flush=True)
            while signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
                time.sleep(0.01)
            print("noted", flush=True)
            time.sleep(600)
        return super().forward(logits, labels)

settings = TrainingParameters(epochs=2, batch_size=8, learning_rate=0.1)
inputs = LabelledInputs(ArrayInputs(np.zeros((16, 4), np.float32), torch.device("cpu")), np.zeros(16, np.int64))
run = TrainingRun("the training", checkpoints=CheckpointFolder(Path(sys.argv[1]), 3600))
train(torch.nn.Linear(4, 3), Loss(), inputs, settings, run)
"""


def test_a_second_signal_ends_the_process_at_once_and_leaves_nothing_half_written(tmp_path):
    # No child of multiprocessing, which would leave the second one to its parent.
    with subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        try:
            for message in ("stepping\n", "noted\n"):
                assert process.stdout.readline() == message
                process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=120) == -signal.SIGTERM
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []


# In this process.


class Signalling(CrossEntropy):
    """Sends this process a signal in one of its steps."""

    def __init__(self, step, number):
        super().__init__()
        self.step, self.number, self.steps = step, number, 0

    def forward(self, logits, labels):
        self.steps += 1
        if self.steps == self.step:
            signal.raise_signal(self.number)
        return super().forward(logits, labels)


def run(checkpoints=None, objective=None, epochs=2, after_epoch=None):
    torch.manual_seed(0)
    module = nn.Linear(4, 3)
    inputs = ArrayInputs(np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32), CPU)
    settings = TrainingParameters(epochs=epochs, batch_size=8, learning_rate=0.1, schedule="one_cycle")
    labels = (np.arange(32) % 3).astype(np.int64)
    objective = objective or CrossEntropy()
    run = TrainingRun("test", after_epoch=after_epoch, checkpoints=checkpoints)
    history = train(module, objective, LabelledInputs(inputs, labels), settings, run)
    return module.weight.tolist(), history


@pytest.fixture(autouse=True)
def handlers_as_before():
    """Every way out of a training gives the handlers back."""
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    after = [signal.getsignal(number) for number in SIGNALS]
    assert after == before


@pytest.mark.parametrize("number", SIGNALS)
def test_the_error_carries_the_exit_code_of_the_signal(tmp_path, number):
    message = "interrupted in epoch 1 after step 3; the same command goes on from there"
    with pytest.raises(TrainingInterrupted, match=message) as caught:
        run(CheckpointFolder(tmp_path, 3600), Signalling(3, number))
    assert caught.value.exit_code == 128 + number
    assert content_of(last(tmp_path))["progress"]["steps"] == 3
    assert run(CheckpointFolder(tmp_path, 3600)) == run()


def test_without_checkpoints_nothing_is_promised():
    with pytest.raises(TrainingInterrupted, match="in epoch 1 after step 3; nothing was stored"):
        run(None, Signalling(3, signal.SIGTERM))


def test_a_signal_in_the_last_step_is_not_lost(tmp_path):
    with pytest.raises(TrainingInterrupted):
        run(CheckpointFolder(tmp_path, 3600), Signalling(8, signal.SIGTERM))
    assert run(CheckpointFolder(tmp_path, 3600)) == run()


def test_a_signal_after_the_last_step_stops_the_run_with_the_result_kept(tmp_path):
    def signal_at_the_end():
        signal.raise_signal(signal.SIGINT) if len(epochs) == 2 else epochs.append(1)
        return {}

    epochs = [1]
    with pytest.raises(TrainingInterrupted, match="goes on from its last checkpoint") as caught:
        run(CheckpointFolder(tmp_path, 3600), after_epoch=signal_at_the_end)
    assert caught.value.exit_code == 130
    assert content_of(last(tmp_path))["progress"]["finished"]
    assert run(CheckpointFolder(tmp_path, 3600)) == run()


def test_a_signal_while_an_epoch_is_found_to_be_the_last_one_is_not_lost(tmp_path):
    def prune():
        signal.raise_signal(signal.SIGTERM)
        raise NoFurtherEpoch

    with pytest.raises(TrainingInterrupted, match="goes on from its last checkpoint"):
        run(CheckpointFolder(tmp_path, 3600), after_epoch=prune)


def test_the_first_of_two_signals_gives_the_exit_code():
    with pytest.raises(TrainingInterrupted) as caught, stop_requests() as stop:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert stop
    assert caught.value.exit_code == 130


def test_one_of_several_processes_may_hear_a_signal_twice(monkeypatch):
    monkeypatch.setattr(interruption_module, "world_size", lambda: 2)
    with pytest.raises(TrainingInterrupted), stop_requests() as stop:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert stop


def test_an_error_inside_is_not_hidden_by_a_request_to_stop():
    with pytest.raises(ZeroDivisionError), stop_requests():
        signal.raise_signal(signal.SIGTERM)
        _ = 1 / 0


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stop_requests() as stop:
            signal.raise_signal(signal.SIGINT)
            assert not stop
            assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_outside_the_main_thread_training_runs_as_well():
    results = []
    thread = threading.Thread(target=lambda: results.append(run()))
    thread.start()
    thread.join()
    assert results == [run()]
