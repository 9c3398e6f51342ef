"""Several processes end together: asked to, killed, or with an error."""

import os
import signal
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.training import (
    CheckpointFolder,
    TrainingDiverged,
    TrainingInterrupted,
    TrainingParameters,
    train,
)
from tests.training.distributed.digits_training import NEVER, STAGES, digits, slow_digits, start, until


def descendants(process):
    """Processes below one, of those that are alive."""
    below = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            below.setdefault(int(fields[1]), set()).add(int(entry.parent.name))
    found = set()
    reached = {process}
    while reached:
        reached = set().union(*(below.get(number, set()) for number in reached)) - found
        found |= reached
    return found


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def workers(process):
    """Processes below one that train; beside them Python has one that keeps account of shared memory."""
    return [number for number in descendants(process) if "spawn_main" in Path(f"/proc/{number}/cmdline").read_text()]


@contextmanager
def once_saved(folder, action):
    """Do something to the processes that train, from the side, when they have written a checkpoint."""
    seen = []

    def wait_and_act():
        until(lambda: list(folder.glob("checkpoint-*")))
        seen.extend(workers(os.getpid()))
        action(seen)

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    yield seen
    thread.join()
    assert len(seen) == 2
    until(lambda: not any(alive(process) for process in seen))


def signal_all(number, processes):
    for process in processes:
        os.kill(process, number)


@pytest.mark.complete
def test_asked_to_stop_all_processes_end_and_the_same_command_goes_on(tmp_path, caplog):
    checkpoints = CheckpointFolder(tmp_path, seconds_between=0)
    with (
        once_saved(tmp_path, lambda _: os.kill(os.getpid(), signal.SIGTERM)),
        pytest.raises(TrainingInterrupted, match=r"digits: interrupted in epoch .* goes on from there") as caught,
    ):
        train(**slow_digits(devices=2, checkpoints=checkpoints))
    assert caught.value.exit_code == 128 + signal.SIGTERM
    state = checkpoints.load()
    assert state is not None and not state.finished
    assert f"in epoch {state.progress['epoch']} after step {state.progress['step']};" in str(caught.value)

    with caplog.at_level("INFO", logger="deephash_pipeline"):
        history = train(**digits(devices=2, checkpoints=CheckpointFolder(tmp_path, NEVER)))
    alone = train(**digits())
    assert [row["epoch"] for row in history] == list(range(1, 9))
    np.testing.assert_allclose([row["loss"] for row in history], [row["loss"] for row in alone], atol=1e-12, rtol=0)
    # Rank 0 says where it goes on, this process that nothing is left to do.
    said = [record.message for record in caplog.records if record.message.startswith("digits: ")]
    assert ["goes on in epoch" in message for message in said] == [True, False]
    assert "finished before" in said[1]


@pytest.mark.complete
def test_ctrl_c_reaches_all_processes_at_once_and_each_stops_once(tmp_path, capfd):
    with (
        once_saved(tmp_path, lambda seen: signal_all(signal.SIGINT, [*seen, os.getpid()])),
        pytest.raises(TrainingInterrupted) as caught,
    ):
        train(**slow_digits(devices=2, checkpoints=CheckpointFolder(tmp_path, 0)))
    assert caught.value.exit_code == 128 + signal.SIGINT
    assert capfd.readouterr() == ("", "")
    state = CheckpointFolder(tmp_path, NEVER).load()
    assert state is not None and not state.finished


def test_where_one_process_is_killed_all_end_and_one_line_says_so(tmp_path):
    with (
        once_saved(tmp_path, lambda seen: os.kill(seen[1], signal.SIGKILL)),
        pytest.raises(
            InputError, match=r"digits: process . terminated with signal SIGKILL, perhaps for lack of memory"
        ),
    ):
        train(**slow_digits(devices=2, checkpoints=CheckpointFolder(tmp_path, 0)))


@pytest.mark.complete
def test_where_the_parent_is_killed_no_process_survives_it_even_where_ctrl_c_is_ignored(tmp_path):
    # In the background of a shell; PyTorch would have SIGINT sent to them.
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = start(tmp_path, 2, 0, 4000)
    signal.signal(signal.SIGINT, former)
    try:
        until(lambda: list((tmp_path / STAGES[0]).glob("checkpoint-*")) or parent.poll() is not None)
        started = descendants(parent.pid)
        assert len(started) >= 2, parent.communicate()[0]
    finally:
        parent.kill()
        parent.communicate()
    until(lambda: not any(alive(process) for process in started))
    assert CheckpointFolder(tmp_path / STAGES[0], NEVER).load() is not None


@pytest.mark.complete
def test_an_error_in_the_processes_comes_back_as_in_one_with_all_it_carries(tmp_path):
    parameters = TrainingParameters(epochs=2, batch_size=128, learning_rate=1e30)
    arguments = digits(devices=2, parameters=parameters, checkpoints=CheckpointFolder(tmp_path, NEVER))
    before = {name: value.clone() for name, value in arguments["module"].state_dict().items()}
    with pytest.raises(TrainingDiverged, match=r"digits: the loss became .* in epoch 1: lower") as caught:
        train(**arguments)
    # More than a pipe holds.
    assert sum(value.nbytes for value in caught.value.weights.values()) > 2**20
    assert all(torch.equal(caught.value.weights[name], before[name]) for name in before)
