"""One training on several devices of this machine: a process for each, started here and gone when it is done."""

import os
import pickle
import signal
import tempfile
from typing import Any

import torch
from torch.multiprocessing import get_context
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException, start_processes

from deephash_pipeline.errors import InputError

from .interruption import StopRequest, stop_requests
from .loop import train
from .state import History


def resolve_devices(devices: int | str, device: torch.device) -> int:
    """Turn ``auto`` into the number of CUDA devices where training runs on CUDA, else into 1.

    Raises:
        InputError: more CUDA devices than there are.
    """
    there = torch.cuda.device_count() if device.type == "cuda" else None
    if devices == "auto":
        return there or 1
    if there is not None and int(devices) > there:
        raise InputError(f"`devices` is {devices}, but there are {there}: use auto")
    return int(devices)


def train_on(devices: int, **arguments: Any) -> History:
    """Call `train`, in as many processes as there are devices to use.

    Args:
        devices: 1 trains in this process. More need `checkpoints`, through which the result comes back.
        arguments: of `train`, by name; without an index for the device.

    Raises:
        InputError: several devices without checkpoints; and what `train` raises, as in one process.
    """
    if devices == 1:
        return train(**arguments)
    if arguments.get("checkpoints") is None:
        raise InputError("training on several devices needs checkpoints: leave out `devices`, or give a folder")
    with tempfile.TemporaryDirectory() as folder, stop_requests() as stop:
        errors = get_context("spawn").SimpleQueue()
        # By value: PyTorch would share the module's memory, and the processes would train it together.
        content = pickle.dumps(arguments)
        processes = start_processes(  # type: ignore[no-untyped-call]
            _train_one_rank, (devices, f"{folder}/rendezvous", content, errors), devices, join=False
        )
        _wait(processes, stop, errors)
    # The processes have left a finished training behind: this only restores it.
    return train(**arguments)


def _wait(processes: Any, stop: StopRequest, errors: Any) -> None:
    forwarded = False
    try:
        while not processes.join(timeout=0.2):
            if stop and not forwarded:
                forwarded = True
                for number in processes.pids():
                    os.kill(number, signal.SIGTERM)
    except (ProcessRaisedException, ProcessExitedException):
        if errors.empty():
            raise
    if not errors.empty():
        raise pickle.loads(errors.get())


def _train_one_rank(rank: int, devices: int, rendezvous: str, content: bytes, errors: Any) -> None:
    arguments = pickle.loads(content)
    if arguments["device"].type == "cuda":
        torch.cuda.set_device(rank)
    else:
        torch.set_num_threads(max(1, torch.get_num_threads() // devices))
    torch.distributed.init_process_group(
        "nccl" if arguments["device"].type == "cuda" else "gloo",
        init_method=f"file://{rendezvous}",
        rank=rank,
        world_size=devices,
    )
    try:
        train(**arguments)
    except InputError as error:
        # What is wrong is wrong on every rank.
        if rank == 0:
            errors.put(pickle.dumps(error))
    finally:
        torch.distributed.destroy_process_group()
