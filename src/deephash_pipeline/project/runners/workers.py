"""Where nodes run: in this process, or in processes of this machine.

Processes are forked by multiprocessing's fork server, a process that has imported what nodes need and has no threads: a
worker starts in milliseconds, and nothing that the run has opened is copied. Each has a pipe of its own. A queue or a
pool that several share would be locked for ever, or broken as a whole, when one of them is killed.
"""

import logging
import multiprocessing
import os
import pickle
import signal
import threading
from abc import ABC, abstractmethod
from concurrent.futures import Future, ThreadPoolExecutor
from logging.handlers import QueueHandler
from multiprocessing import connection
from types import SimpleNamespace
from typing import Any

import cloudpickle
from kedro.pipeline.node import Node

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.fork_server import end_with_parent, environment
from deephash_pipeline.project.runners.job import Job, attempt, error_of, run_node
from deephash_pipeline.project.runners.schedule import Needs


class WorkerLost(InputError):
    """A worker ended before its node did: its process was killed, or its machine is gone."""


class Workers(ABC):
    """Places where nodes run. A runner sends a node only when its inputs are stored.

    Attributes:
        in_background: whether `submit` returns before the node is done.
    """

    in_background = True

    @abstractmethod
    def submit(self, node: Node, needs: Needs) -> Future[None]:
        """Have a node run.

        Returns:
            Done when the node is; with its error if it fails, `WorkerLost` if it may be sent again.
        """

    def ask_to_stop(self) -> None:  # noqa: B027 - where nodes run in this process, they hear signals themselves
        """Have trainings store what they have and end, and end everything else."""

    def close(self) -> None:  # noqa: B027
        """End what is still at work."""


class ThisProcess(Workers):
    """Runs a node at once, where the run was started.

    Args:
        job: job of the run.
    """

    in_background = False

    def __init__(self, job: Job) -> None:
        self._job = job

    def submit(self, node: Node, needs: Needs) -> Future[None]:
        """Run a node."""
        future: Future[None] = Future()
        try:
            run_node(self._job, node, needs.threads)
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(None)
        return future


SECONDS_TO_END_WORKER = 60.0


class WorkerProcesses(Workers):
    """Processes that are started when they are needed, and again when one was killed.

    Args:
        job: job of the run.
        number: number of processes at most.
        devices: CUDA devices, of which each process sees one; empty for those that all see.
    """

    def __init__(self, job: Job, number: int, devices: tuple[str, ...] = ()) -> None:
        self._job = cloudpickle.dumps(job)
        self._devices = devices
        self._all: list[_Worker] = []
        self._lock = threading.Lock()
        self._stopping = False
        # A thread waits for each process, and keeps it for the next node.
        self._own = threading.local()
        self._threads = ThreadPoolExecutor(number, thread_name_prefix="worker")

    def submit(self, node: Node, needs: Needs) -> Future[None]:
        """Have a process run a node."""
        return self._threads.submit(self._run, node, needs.threads)

    def ask_to_stop(self) -> None:
        """Send SIGTERM, which a training answers with a checkpoint."""
        with self._lock:
            self._stopping = True
            for worker in self._all:
                worker.process.terminate()

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._stopping = True
            for worker in self._all:
                worker.end()
        self._threads.shutdown(cancel_futures=True)

    def _run(self, node: Node, thread_count: int) -> None:
        worker: _Worker | None = getattr(self._own, "worker", None)
        if worker is None or not worker.process.is_alive():
            with self._lock:
                if self._stopping:
                    raise WorkerLost("the run was stopped")
                self._all = [worker for worker in self._all if worker.process.is_alive()]
                device = self._devices[len(self._all) % len(self._devices)] if self._devices else None
                worker = self._own.worker = _Worker(self._job, device)
                self._all.append(worker)
        error = worker.run(node, thread_count)
        if error is not None:
            raise error


class _Worker:
    """A process, as the one that has started it sees it."""

    def __init__(self, job: bytes, device: str | None) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("forkserver").Process(target=_serve, args=(theirs, job, device))
        with environment():
            self.process.start()
        theirs.close()

    def run(self, node: Node, thread_count: int) -> BaseException | None:
        """Run a node.

        Returns:
            The error of the node, if it fails.

        Raises:
            WorkerLost: the process ended before the node did.
        """
        try:
            self._pipe.send_bytes(pickle.dumps((node, thread_count)))
            while True:
                message = pickle.loads(self._pipe.recv_bytes())
                if isinstance(message, logging.LogRecord):
                    logging.getLogger(message.name).handle(message)
                else:
                    return error_of(message)
        except (EOFError, OSError) as error:
            self.process.join(SECONDS_TO_END_WORKER)
            raise WorkerLost(f"{node.name}: its process {_how_it_ended(self.process.exitcode)}") from error

    def end(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.join(SECONDS_TO_END_WORKER)


def _how_it_ended(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


# In a worker.


def _serve(pipe: connection.Connection, job: bytes, device: str | None) -> None:
    # The terminal sends Ctrl-C to all processes; the one that has started this one passes it on, as SIGTERM and once.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    if device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device
    lock = threading.Lock()

    def send(message: Any) -> None:
        with lock:
            pipe.send_bytes(pickle.dumps(message))

    logging.getLogger().handlers[:] = [QueueHandler(SimpleNamespace(put_nowait=send))]
    loaded: Job = cloudpickle.loads(job)
    while True:
        try:
            node, thread_count = pickle.loads(pipe.recv_bytes())
        except EOFError:
            return
        send(attempt(loaded, node, thread_count))
