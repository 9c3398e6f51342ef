"""Several processes train what one would: the same gradient, the same curve, one set of files; and end together."""

import json
import os
import pickle
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from deephash_pipeline.errors import InputError
from deephash_pipeline.training import (
    CheckpointFolder,
    CrossEntropy,
    TrainingDiverged,
    TrainingInterrupted,
    TrainingParameters,
    ranks,
    resolve_devices,
    train_on,
)

SCRIPT = Path(__file__).parent / "digits_on_ranks.py"
STAGES = ("pre-training", "fine-tuning")
CPU = torch.device("cpu")
SECONDS_TO_WAIT = 120.0
NEVER = 1e9


SHARED = runpy.run_path(str(SCRIPT))


def start(*arguments: Any, **environment: Any) -> Any:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + SECONDS_TO_WAIT
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def descendants(process: int) -> set[int]:
    """Processes below one, of those that are alive."""
    below: dict[int, set[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            below.setdefault(int(fields[1]), set()).add(int(entry.parent.name))
    found: set[int] = set()
    reached = {process}
    while reached:
        reached = set().union(*(below.get(number, set()) for number in reached)) - found
        found |= reached
    return found


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What one process, two of torchrun, and two that `train_on` has started have found."""
    made = {name: tmp_path_factory.mktemp(name) for name in ("alone", "torchrun", "train_on")}
    meeting = {"WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    SHARED["main"](made["alone"], 1, NEVER, 3)
    # All fine-tune the same weights: the last bits of those that they have pre-trained differ.
    trunk = made["alone"] / "trunk-0.safetensors"
    running = [start(made["torchrun"], 1, NEVER, 3, trunk, RANK=rank, LOCAL_RANK=rank, **meeting) for rank in range(2)]
    for process in running:
        output, _ = process.communicate(timeout=SECONDS_TO_WAIT)
        assert process.returncode == 0, output
    SHARED["main"](made["train_on"], 2, NEVER, 3, trunk)
    return made


def losses(folder: Path, stage: str) -> list[float]:
    return [row["loss"] for row in json.loads((folder / "histories.json").read_text())[stage]]


@pytest.mark.parametrize("loss", ["softmax", "hashing"])
def test_two_processes_find_the_gradient_of_one_at_the_first_step(folders: dict[str, Path], loss: str) -> None:
    one, two = (
        torch.cat([held.double().flatten() for name, held in sorted(load_file(path).items()) if name.startswith(loss)])
        for path in (folders[name] / "gradients.safetensors" for name in ("alone", "torchrun"))
    )
    assert one.abs().max() > 0
    assert float((two - one).norm() / one.norm()) <= 1e-6


@pytest.mark.parametrize("way", ["torchrun", "train_on"])
@pytest.mark.parametrize("stage", STAGES)
def test_the_loss_curve_of_two_processes_is_that_of_one(folders: dict[str, Path], stage: str, way: str) -> None:
    alone = losses(folders["alone"], stage)
    assert len(alone) == 3 and alone[-1] < alone[0]
    np.testing.assert_allclose(losses(folders[way], stage), alone, atol=1e-4, rtol=0)


@pytest.mark.parametrize("way", ["torchrun", "train_on"])
@pytest.mark.parametrize("stage", STAGES)
def test_the_weights_are_those_of_one_process_and_stand_in_one_checkpoint(
    folders: dict[str, Path], stage: str, way: str
) -> None:
    files = sorted(path.suffix for path in (folders[way] / stage).iterdir())
    assert files == [".json", ".safetensors"]
    stored = [CheckpointFolder(folders[name] / stage, NEVER).load() for name in ("alone", way)]
    one, two = (state.tensors for state in stored if state is not None)
    assert one.keys() == two.keys()
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-3, atol=1e-4)


def digits(**changes: Any) -> dict[str, Any]:
    """Arguments of `train`."""
    inputs, labels = SHARED["inputs_and_labels"]()
    return {
        "module": SHARED["softmax_network"](),
        "objective": CrossEntropy(),
        "inputs": inputs,
        "labels": labels,
        "parameters": SHARED["parameters"](4),
        "seed": 1,
        "device": CPU,
        "description": "digits",
        **changes,
    }


def workers(process: int) -> list[int]:
    """Processes below one that train; beside them Python has one that keeps account of shared memory."""
    return [number for number in descendants(process) if "spawn_main" in Path(f"/proc/{number}/cmdline").read_text()]


@contextmanager
def once_saved(folder: Path, action: Callable[[list[int]], Any]) -> Iterator[list[int]]:
    """Do something to the processes that train, from the side, when they have written a checkpoint."""
    seen: list[int] = []

    def wait_and_act() -> None:
        until(lambda: list(folder.glob("*.json")))
        seen.extend(workers(os.getpid()))
        action(seen)

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    yield seen
    thread.join()
    assert len(seen) == 2
    until(lambda: not any(alive(process) for process in seen))


def signal_all(number: signal.Signals, processes: Iterable[int]) -> None:
    for process in processes:
        os.kill(process, number)


def test_asked_to_stop_all_processes_end_and_the_same_command_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoints = CheckpointFolder(tmp_path, seconds_between=0)
    with (
        once_saved(tmp_path, lambda _: os.kill(os.getpid(), signal.SIGTERM)),
        pytest.raises(TrainingInterrupted, match=r"digits: interrupted in epoch .* goes on from there") as caught,
    ):
        train_on(2, **digits(checkpoints=checkpoints))
    assert caught.value.exit_code == 128 + signal.SIGTERM
    state = checkpoints.load()
    assert state is not None and not state.finished
    assert f"in epoch {state.progress['epoch']} behind step {state.progress['step']};" in str(caught.value)

    with caplog.at_level("INFO", logger="deephash_pipeline"):
        history = train_on(2, **digits(checkpoints=CheckpointFolder(tmp_path, NEVER)))
    alone = train_on(1, **digits())
    assert [row["epoch"] for row in history] == [1, 2, 3, 4]
    np.testing.assert_allclose([row["loss"] for row in history], [row["loss"] for row in alone], atol=1e-4, rtol=0)
    # Rank 0 says where it goes on, this process that nothing is left to do.
    said = [record.message for record in caplog.records if record.message.startswith("digits: ")]
    assert ["goes on in epoch" in message for message in said] == [True, False]
    assert "finished before" in said[1]


def test_ctrl_c_reaches_all_processes_at_once_and_each_stops_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (
        once_saved(tmp_path, lambda seen: signal_all(signal.SIGINT, [*seen, os.getpid()])),
        pytest.raises(TrainingInterrupted) as caught,
    ):
        train_on(2, **digits(checkpoints=CheckpointFolder(tmp_path, 0)))
    assert caught.value.exit_code == 128 + signal.SIGINT
    assert capfd.readouterr() == ("", "")
    state = CheckpointFolder(tmp_path, NEVER).load()
    assert state is not None and not state.finished


def test_where_one_process_is_killed_all_end_and_one_line_says_so(tmp_path: Path) -> None:
    with (
        once_saved(tmp_path, lambda seen: os.kill(seen[1], signal.SIGKILL)),
        pytest.raises(
            InputError, match=r"digits: process . terminated with signal SIGKILL, perhaps for lack of memory"
        ),
    ):
        train_on(2, **digits(checkpoints=CheckpointFolder(tmp_path, 0)))


def test_where_the_parent_is_killed_no_process_is_left_behind(tmp_path: Path) -> None:
    parent = start(tmp_path, 2, 0, 40)
    until(lambda: list((tmp_path / STAGES[0]).glob("*.json")) or parent.poll() is not None)
    started = descendants(parent.pid)
    assert len(started) >= 2, parent.communicate()[0]
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    until(lambda: not any(alive(process) for process in started))
    assert CheckpointFolder(tmp_path / STAGES[0], NEVER).load() is not None


def test_an_error_in_the_processes_comes_back_as_in_one_with_all_it_carries(tmp_path: Path) -> None:
    parameters = TrainingParameters(epochs=2, batch_size=128, learning_rate=1e30)
    arguments = digits(parameters=parameters, checkpoints=CheckpointFolder(tmp_path, NEVER))
    before = {name: held.clone() for name, held in arguments["module"].state_dict().items()}
    with pytest.raises(TrainingDiverged, match=r"digits: the loss became .* in epoch 1: lower") as caught:
        train_on(2, **arguments)
    # More than a pipe holds.
    assert sum(held.nbytes for held in caught.value.weights.values()) > 2**20
    assert all(torch.equal(caught.value.weights[name], before[name]) for name in before)


def test_a_batch_that_cannot_be_divided_is_refused_before_anything_starts(tmp_path: Path) -> None:
    arguments = digits(checkpoints=CheckpointFolder(tmp_path, NEVER))
    with pytest.raises(InputError, match="`batch_size` 128 cannot be divided among 3 devices: use a multiple of 3"):
        train_on(3, **arguments)


def test_several_devices_without_checkpoints_are_refused() -> None:
    with pytest.raises(InputError, match="needs checkpoints: leave out `devices`"):
        train_on(2, **digits())


def test_processes_within_processes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(InputError, match="`devices` is 2 in a process that torchrun has started: leave it at 1"):
        train_on(2, **digits(checkpoints=CheckpointFolder(tmp_path, NEVER)))


def test_one_device_by_its_index_is_not_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = digits(checkpoints=CheckpointFolder(tmp_path, NEVER), device=torch.device("cuda:1"))
    with pytest.raises(InputError, match="device `cuda:1` is one, and several processes each take their own: use cuda"):
        train_on(2, **arguments)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    with pytest.raises(InputError, match="device `cuda:1` is one"):
        resolve_devices(2, torch.device("cuda:1"))


@pytest.mark.parametrize(
    ("devices", "device", "number"),
    [("auto", "cuda", 4), ("auto", "cuda:1", 1), ("auto", "cpu", 1), (3, "cuda", 3), (2, "cpu", 2), (1, "cuda:1", 1)],
)
def test_auto_is_all_cuda_devices_there_are(
    monkeypatch: pytest.MonkeyPatch, devices: int | str, device: str, number: int
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert resolve_devices(devices, torch.device(device)) == number


def test_more_cuda_devices_than_there_are_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(InputError, match="`devices` is 2, but there are 1: use auto"):
        resolve_devices(2, torch.device("cuda"))


def test_one_process_is_the_whole_of_all_ranks() -> None:
    part = torch.rand(3, 2)
    assert ranks.world_size() == 1 and ranks.rank() == 0
    assert ranks.gather(part) is part
    assert ranks.own_part(7) == slice(0, 7)
    assert ranks.any_rank(True) and not ranks.any_rank(False)
    module = nn.Linear(2, 2)
    before = {name: held.clone() for name, held in module.state_dict().items()}
    ranks.share_state(module)
    ranks.sum_gradients(module)
    assert all(torch.equal(held, before[name]) for name, held in module.state_dict().items())


@pytest.mark.parametrize(
    ("world", "batch", "parts"), [(2, 8, [(0, 4), (4, 8)]), (4, 8, [(0, 2), (2, 4), (4, 6), (6, 8)])]
)
def test_ranks_share_a_batch_without_gap_or_overlap(
    monkeypatch: pytest.MonkeyPatch, world: int, batch: int, parts: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr(ranks, "world_size", lambda: world)
    found = []
    for number in range(world):
        monkeypatch.setattr(ranks, "rank", lambda number=number: number)
        found.append(ranks.own_part(batch))
    assert found == [slice(*part) for part in parts]


def test_the_errors_of_training_survive_the_way_between_processes() -> None:
    error = TrainingDiverged("message", "description", {"weight": torch.ones(2)})
    restored = pickle.loads(pickle.dumps(error))
    assert str(restored) == "message" and torch.equal(restored.weights["weight"], torch.ones(2))
