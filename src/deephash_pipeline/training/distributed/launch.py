"""One training on several devices of this machine: a process for each, started here and gone when it is done.

Processes are those of `torch.multiprocessing`. What is added: errors come back as exceptions with all they carry, log
records through a queue, and a request to stop reaches every process, which then writes one last checkpoint.
"""

import logging
import os
import pickle
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.multiprocessing import get_context
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException, start_processes

from deephash_pipeline.child_process import end_with_parent
from deephash_pipeline.devices import require_no_index
from deephash_pipeline.errors import InputError
from deephash_pipeline.training.distributed.ranks import backend, share_of
from deephash_pipeline.training.loop import train
from deephash_pipeline.training.resuming.interruption import StopRequest, TrainingInterrupted, stop_requests
from deephash_pipeline.training.resuming.state import History

SECONDS_BETWEEN_LOOKS = 0.2
SECONDS_TO_FINISH = 60.0
"""How long the other processes may take to end once one of them has failed; one that saves a checkpoint needs some."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def train_on(devices: int, **arguments: Any) -> History:
    """Call `train`, in as many processes as there are devices to use.

    Args:
        devices: 1 trains in this process. More need `checkpoints`, through which the result comes back.
        arguments: of `train`, by name; without an index for the device.

    Raises:
        InputError: several devices without checkpoints, or a batch that they cannot share; a process that was killed;
            and what `train` raises, as in one process.

    Example:
        In a script under ``if __name__ == "__main__":``, because the processes import it. ::

            train_on(2, module=network, objective=loss, inputs=inputs, labels=labels, parameters=parameters, seed=0,
                     device=torch.device("cuda"), description="two devices", checkpoints=checkpoints)
    """
    if devices == 1:
        return train(**arguments)
    if "RANK" in os.environ:
        raise InputError(f"`devices` is {devices} in a process that torchrun has started: leave it at 1")
    if arguments.get("checkpoints") is None:
        raise InputError("training on several devices needs checkpoints: leave out `devices`, or give a folder")
    require_no_index(arguments["device"])
    share_of(arguments["parameters"].batch_size, devices)
    # Each process puts it on its own device.
    arguments["module"].cpu()
    with stop_requests() as stop, tempfile.TemporaryDirectory() as folder, _records_of_processes() as records:
        job = _Job(
            devices,
            Path(folder),
            # By value: PyTorch would share the module's memory, and the processes would train it together.
            pickle.dumps(arguments),
            records,
            logging.getLogger(__package__).getEffectiveLevel(),
        )
        with _signals_wait():
            processes = start_processes(_train_one_rank, (job,), devices, join=False)  # type: ignore[no-untyped-call]
        _wait(processes, stop, job, arguments["description"])
    # The last checkpoint is of a finished training now: this only restores it.
    return train(**arguments)


class _Job(NamedTuple):
    devices: int
    # For the rendezvous, and for the errors that a user is to read.
    folder: Path
    # Of `train`, pickled.
    arguments: bytes
    # A queue for what rank 0 logs.
    records: Any
    log_level: int

    def error_file(self, rank: int) -> Path:
        """Name the file of the error that ends a rank."""
        return self.folder / f"error-{rank}"


def _train_one_rank(rank: int, job: _Job) -> None:
    # Until `train` listens to them, signals end the process.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    end_with_parent()
    logging.getLogger().addHandler(QueueHandler(job.records) if rank == 0 else logging.NullHandler())
    logging.getLogger().setLevel(job.log_level)
    arguments = pickle.loads(job.arguments)
    device = arguments["device"]
    if device.type == "cuda":
        torch.cuda.set_device(rank)
    torch.set_num_threads(max(1, torch.get_num_threads() // job.devices))
    rendezvous = f"file://{job.folder / 'rendezvous'}"
    torch.distributed.init_process_group(backend(device), init_method=rendezvous, rank=rank, world_size=job.devices)
    try:
        train(**arguments)
    except InputError as error:
        partial = job.error_file(rank).with_suffix(".partial")
        partial.write_bytes(pickle.dumps(error))
        partial.replace(job.error_file(rank))
        raise SystemExit(1) from error
    finally:
        torch.distributed.destroy_process_group()


def _wait(processes: Any, stop: StopRequest, job: _Job, description: str) -> None:
    forwarded = False
    failure: Exception | None = None
    try:
        while not processes.join(timeout=SECONDS_BETWEEN_LOOKS, grace_period=SECONDS_TO_FINISH):
            if stop and not forwarded:
                forwarded = True
                for process in processes.processes:
                    process.terminate()
    except (ProcessRaisedException, ProcessExitedException) as unexpected:
        failure = unexpected
    files = [job.error_file(rank) for rank in range(job.devices) if job.error_file(rank).exists()]
    reported: InputError | None = pickle.loads(files[0].read_bytes()) if files else None
    if stop.signal_number is not None and (failure or reported):
        message = str(reported or f"{description}: interrupted before its first step")
        raise TrainingInterrupted(message, stop.signal_number)
    if reported:
        raise reported
    if isinstance(failure, ProcessExitedException):
        raise InputError(
            f"{description}: {failure}, perhaps for lack of memory; the same command goes on from the last checkpoint"
        ) from failure
    if failure:
        raise failure


@contextmanager
def _records_of_processes() -> Iterator[Any]:
    """Give a queue for log records; they are handled here as if they had been made here."""
    records = get_context("spawn").Queue()
    listener = QueueListener(records, _Relay())
    listener.start()
    try:
        yield records
    finally:
        listener.stop()


class _Relay(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        logging.getLogger(record.name).handle(record)


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Block signals, for this process inside the block, for one that is started here until it lets them in.

    A signal in the middle of its imports would end it with a page of text.
    """
    former = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)
