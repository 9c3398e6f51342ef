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
from torch import nn
from torch.multiprocessing import get_context
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException, start_processes

from deephash_pipeline.common.child_process import end_with_parent
from deephash_pipeline.common.devices import require_no_index
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.training.distributed.ranks import backend, part_of
from deephash_pipeline.training.gradients import Objective
from deephash_pipeline.training.inputs import LabelledInputs
from deephash_pipeline.training.loop import train_here
from deephash_pipeline.training.parameters import TrainingParameters, TrainingRun
from deephash_pipeline.training.resuming.interruption import StopRequest, TrainingInterrupted, stop_requests
from deephash_pipeline.training.resuming.state import History

SECONDS_BETWEEN_LOOKS = 0.2
SECONDS_TO_FINISH = 60.0
"""How long the other processes may take to end once one of them has failed; one that saves a checkpoint needs some."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def train(
    module: nn.Module,
    objective: Objective,
    training_set: LabelledInputs,
    parameters: TrainingParameters,
    run: TrainingRun,
) -> History:
    """Minimise an objective over a training set, in place; on several devices in a process for each.

    With checkpoints, a training that was interrupted goes on after the last step that was saved and ends with the
    weights it would have had, bit for bit; one that had finished only gives its result again. Under ``torchrun`` every
    process takes its part of each batch through the trunk. Where `devices` of the run is more than 1, such processes
    are started here; they import the script that calls, so there the call stands under ``if __name__ == "__main__":``.

    Args:
        module: maps a batch of inputs to the objective's first argument; moved to the run's device, left in evaluation
            mode.
        objective: maps (outputs, labels) to a loss and metrics to watch.
        training_set: what is learned from.
        parameters: optimiser, schedule and sampler.
        run: name, seed, devices, checkpoints, and what is measured after each epoch.

    Returns:
        One dictionary an epoch: ``epoch`` (from 1), ``learning_rate``, ``loss`` and the means of the watched metrics.

    Raises:
        InputError: labels and inputs of different number, fewer inputs than one batch, or an unfinished training of
            another configuration in the checkpoints; several devices without checkpoints, or with smaller batches than
            devices; a process that was killed.
        TrainingDiverged: non-finite loss.
        TrainingInterrupted: SIGTERM or Ctrl-C; a checkpoint of the last whole step is there.

    Example:
        >>> import numpy as np
        >>> from deephash_pipeline.training import ArrayInputs, CrossEntropy
        >>> labels = np.arange(32) % 2
        >>> inputs = ArrayInputs(np.eye(2, dtype=np.float32)[labels], torch.device("cpu"))
        >>> parameters = TrainingParameters(epochs=3, batch_size=8, learning_rate=0.5)
        >>> training_set, run = LabelledInputs(inputs, labels), TrainingRun("two classes", seed=0)
        >>> history = train(nn.Linear(2, 2), CrossEntropy(), training_set, parameters, run)
        >>> [row["epoch"] for row in history], history[-1]["loss"] < history[0]["loss"]
        ([1, 2, 3], True)
    """
    arguments = (module, objective, training_set, parameters, run)
    if run.devices == 1:
        return train_here(*arguments)
    if "RANK" in os.environ:
        raise InputError(f"`devices` is {run.devices} in a process that torchrun has started: leave it at 1")
    if run.checkpoints is None:
        raise InputError("training on several devices needs checkpoints: leave out `devices`, or give a folder")
    require_no_index(run.device)
    part_of(parameters.batch_size, run.devices, rank=0)
    # Each process puts it on its own device.
    module.cpu()
    with stop_requests() as stop, tempfile.TemporaryDirectory() as folder, _records_of_processes() as records:
        job = _Job(
            run.devices,
            Path(folder),
            # By value: PyTorch would share the module's memory, and the processes would train it together.
            pickle.dumps(arguments),
            records,
            logging.getLogger(__package__).getEffectiveLevel(),
        )
        with _signals_wait():
            processes = start_processes(_train_one_rank, (job,), run.devices, join=False)  # type: ignore[no-untyped-call]
        _wait(processes, stop, job, run.name)
    # The last checkpoint is of a finished training now: this only restores it.
    return train_here(*arguments)


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
    # Until the loop listens to them, signals end the process.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    end_with_parent()
    logging.getLogger().addHandler(QueueHandler(job.records) if rank == 0 else logging.NullHandler())
    logging.getLogger().setLevel(job.log_level)
    module, objective, training_set, parameters, run = pickle.loads(job.arguments)
    device = run.device
    if device.type == "cuda":
        torch.cuda.set_device(rank)
    torch.set_num_threads(max(1, torch.get_num_threads() // job.devices))
    rendezvous = f"file://{job.folder / 'rendezvous'}"
    torch.distributed.init_process_group(backend(device), init_method=rendezvous, rank=rank, world_size=job.devices)
    try:
        train_here(module, objective, training_set, parameters, run)
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
