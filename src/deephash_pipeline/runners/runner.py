"""Kedro's runners for this project: side by side or one after the other, with equal results bit for bit.

A runner has three parts. The `Schedule` says which node starts next, `Workers` are where it runs, and what is here
starts nodes, calls the hooks that belong to where the run was started, and deals with errors. Another kind of workers,
on other machines, is a runner that overrides `open_workers` and `capacity`.
"""

import logging
from abc import abstractmethod
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

from kedro.framework.hooks.manager import _create_hook_manager
from kedro.io import MemoryDataset
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node
from kedro.runner import AbstractRunner

from deephash_pipeline.errors import InputError
from deephash_pipeline.freshness import POLICY, nodes_to_run
from deephash_pipeline.freshness.graph import Catalog
from deephash_pipeline.runners.display import RunDisplay
from deephash_pipeline.runners.job import Job, WorksInWorkers
from deephash_pipeline.runners.needs import (
    NODES_ON_A_DEVICE,
    Capacity,
    available_memory,
    count_cores,
    cuda_devices,
    needs_of,
)
from deephash_pipeline.runners.processes import WorkerProcesses, start_server
from deephash_pipeline.runners.schedule import Schedule
from deephash_pipeline.runners.workers import ThisProcess, WorkerLost, Workers
from deephash_pipeline.training import StopRequest, TrainingInterrupted, stop_requests

logger = logging.getLogger(__name__)

ROUNDS = 3
"""What was missing and is made again as it was not before leaves something else to make."""

ATTEMPTS = 3
"""How often a node is started whose worker is lost."""

SECONDS_BETWEEN_LOOKS = 0.05
"""How long a signal may wait for a worker that is to hear of it."""


class NodesFailed(InputError):
    """Several nodes failed, each with its line above."""


class GridRunner(AbstractRunner):
    """Runs all nodes that are ready, as many at a time as there is room for, those with the longest way to go first.

    Args:
        workers: how many nodes run side by side at most; as many as there are cores by default.
        on_error: whether nodes that do not need a failed one still run (``continue``), or no more start (``stop``).
        skipping: whether to leave out nodes whose outputs are up to date.
        is_async: of Kedro's interface.

    Raises:
        InputError: less than one worker, or `is_async`.
    """

    def __init__(
        self,
        workers: int | None = None,
        on_error: Literal["continue", "stop"] = "continue",
        skipping: bool = False,
        is_async: bool = False,
    ) -> None:
        super().__init__()
        if is_async:
            raise InputError("nodes run side by side, and each loads one dataset after the other: leave out --async")
        if workers is not None and workers < 1:
            raise InputError(f"`workers` is {workers}: at least one is needed")
        self.workers = workers
        self.on_error = on_error
        self.skipping = skipping

    @abstractmethod
    def open_workers(self, catalog: Catalog, hook_manager: Any, run_id: str | None, display: RunDisplay) -> Workers:
        """Get the places ready where nodes are to run."""

    @abstractmethod
    def capacity(self, catalog: Catalog) -> Capacity:
        """Say what may be taken up at the same time."""

    def hooks_of_node(self, hook_manager: Any, name: str) -> Any:
        """Give the hook of this name without those that work where a node runs."""
        return hook_manager.subset_hook_caller(
            name, [plugin for plugin in hook_manager.get_plugins() if isinstance(plugin, WorksInWorkers)]
        )

    def interruptions(self) -> AbstractContextManager[StopRequest]:
        """Listen to signals as long as nodes run."""
        return stop_requests()

    def check(self, pipeline: Pipeline, catalog: Catalog) -> None:
        """Raise InputError if what one node makes would not reach the next, because it is stored nowhere."""
        unstored = sorted(name for name in pipeline.all_outputs() if isinstance(catalog[name], MemoryDataset))
        if unstored:
            raise InputError(
                f"`{unstored[0]}` is stored nowhere, and other processes cannot read it: give it an entry in the "
                "catalog, or use --runner=SequentialRunner"
            )

    def run(
        self,
        pipeline: Pipeline,
        catalog: Catalog,
        hook_manager: Any = None,
        run_id: str | None = None,
        only_missing_outputs: bool = False,
    ) -> dict[str, Any]:
        """Run a pipeline, or what of it is not up to date. Hooks see the whole pipeline in either case."""
        hook_manager = hook_manager or _create_hook_manager()
        if not self.skipping:
            return dict(super().run(pipeline, catalog, hook_manager, run_id, only_missing_outputs))
        outputs: dict[str, Any] = {}
        for _ in range(ROUNDS):
            waiting = nodes_to_run(pipeline, catalog, POLICY.stale_allowed)
            if not waiting:
                break
            if len(waiting) < len(pipeline.nodes):
                up_to_date = len(pipeline.nodes) - len(waiting)
                logger.info("%d nodes are up to date, %d are run", up_to_date, len(waiting))
            part = pipeline.only_nodes(*waiting)
            outputs = super().run(part, catalog, hook_manager, run_id, only_missing_outputs)
        return outputs

    @property
    def _logger(self) -> logging.Logger:
        return logging.getLogger("kedro.runner")

    def _get_executor(self, max_workers: int) -> None:
        return None

    def _run(self, pipeline: Pipeline, catalog: Catalog, hook_manager: Any = None, run_id: str | None = None) -> None:
        self.check(pipeline, catalog)
        capacity, cores = self.capacity(catalog), count_cores()
        schedule = Schedule(pipeline, capacity, lambda node: needs_of(node, catalog, cores))
        with (
            self.interruptions() as stop,
            RunDisplay(schedule, capacity.threads) as display,
            self._opened(catalog, hook_manager, run_id, display) as workers,
        ):
            _Loop(self, schedule, display, workers, stop, catalog, hook_manager, run_id).run()

    @contextmanager
    def _opened(
        self, catalog: Catalog, hook_manager: Any, run_id: str | None, display: RunDisplay
    ) -> Iterator[Workers]:
        workers = self.open_workers(catalog, hook_manager, run_id, display)
        try:
            yield workers
        finally:
            workers.close()


class ParallelRunner(GridRunner):
    """Runs nodes in processes of this machine, one thread each unless a network needs more."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if self.skipping:
            # A whole pipeline: it will be wanted.
            start_server()

    def capacity(self, catalog: Catalog) -> Capacity:
        """Count cores, free memory and, where the run computes on CUDA, places on its devices."""
        devices = cuda_devices(catalog)
        return Capacity(
            self.workers or count_cores(), available_memory(), len(devices) * NODES_ON_A_DEVICE if devices else None
        )

    def open_workers(self, catalog: Catalog, hook_manager: Any, run_id: str | None, display: RunDisplay) -> Workers:
        """Make a pool of processes."""
        job = Job.of(catalog, hook_manager.get_plugins(), run_id)
        return WorkerProcesses(job, self.capacity(catalog).threads, display.receive, cuda_devices(catalog))

    def _run(self, pipeline: Pipeline, catalog: Catalog, hook_manager: Any = None, run_id: str | None = None) -> None:
        if len(pipeline.nodes) == len(pipeline.grouped_nodes):
            # Nodes in a row are not worth a second process.
            SequentialRunner(on_error=self.on_error)._run(pipeline, catalog, hook_manager, run_id)
        else:
            super()._run(pipeline, catalog, hook_manager, run_id)


class SequentialRunner(GridRunner):
    """Runs nodes one after the other in this process, on as many threads each as in any other."""

    def capacity(self, catalog: Catalog) -> Capacity:
        """Give room for one node."""
        return Capacity(1, available_memory(), nodes=1)

    def open_workers(self, catalog: Catalog, hook_manager: Any, run_id: str | None, display: RunDisplay) -> Workers:
        """Use this process."""
        return ThisProcess(catalog, hook_manager, run_id, display.receive)

    def hooks_of_node(self, hook_manager: Any, name: str) -> Any:
        """Give no hook: Kedro calls all of them where the node runs."""
        return lambda **arguments: None

    def interruptions(self) -> AbstractContextManager[StopRequest]:
        """Leave signals to the training that runs."""
        return nullcontext(StopRequest())

    def check(self, pipeline: Pipeline, catalog: Catalog) -> None:
        """Accept what is passed on in memory."""


class _Loop:
    """One run: starts nodes and takes in what becomes of them."""

    def __init__(
        self,
        runner: GridRunner,
        schedule: Schedule,
        display: RunDisplay,
        workers: Workers,
        stop: StopRequest,
        catalog: Catalog,
        hook_manager: Any,
        run_id: str | None,
    ) -> None:
        self.runner, self.schedule, self.display, self.workers, self.stop = runner, schedule, display, workers, stop
        self.common = {"catalog": catalog, "inputs": {}, "is_async": False, "run_id": run_id}
        self.hooks = {
            name: runner.hooks_of_node(hook_manager, name)
            for name in ("before_node_run", "after_node_run", "on_node_error")
        }
        self.futures: dict[Future[None], Node] = {}
        self.errors: dict[Node, BaseException] = {}
        self.interrupted: list[TrainingInterrupted] = []
        self.stopping = False

    def run(self) -> None:
        """Run all nodes that can run.

        Raises:
            TrainingInterrupted: somebody has asked to stop.
            NodesFailed: several nodes have failed; the error of one, if it was one.
        """
        while True:
            self._start_nodes()
            if not self.futures:
                break
            done, _ = wait(self.futures, timeout=SECONDS_BETWEEN_LOOKS, return_when=FIRST_COMPLETED)
            if self.stop and not self.stopping:
                self._stop()
            ended = [(self.futures.pop(future), future.exception()) for future in done]
            for node, error in ended:
                self._note(node, error)
            # Hooks take time, in which the next nodes run already.
            self._start_nodes()
            for node, error in ended:
                self._call_hooks(node, error)
        self._raise_what_happened()

    def _start_nodes(self) -> None:
        while not self.stopping and not self.stop and (following := self.schedule.start_next()) is not None:
            node, needs = following
            if self.schedule.attempts[node] == 1:
                self.hooks["before_node_run"](node=node, **self.common)
            self.display.start(node)
            self.futures[self.workers.submit(node, needs)] = node

    def _note(self, node: Node, error: BaseException | None) -> None:
        self.display.end(node, done=error is None)
        if error is None:
            self.schedule.finish(node)
        elif isinstance(error, TrainingInterrupted):
            # In this process it is the training that hears the signal.
            self.interrupted.append(error)
            self.schedule.fail(node)
            self._stop()
        elif self.stopping and isinstance(error, WorkerLost):
            self.schedule.fail(node)
        elif isinstance(error, WorkerLost) and self.schedule.attempts[node] < ATTEMPTS:
            logger.warning("%s; it is run again", error)
            self.schedule.put_back(node)
        else:
            self.errors[node] = error
            self.schedule.fail(node)
            if self.runner.on_error == "stop":
                self._stop()

    def _stop(self) -> None:
        if not self.stopping:
            self.stopping = True
            self.workers.ask_to_stop()

    def _call_hooks(self, node: Node, error: BaseException | None) -> None:
        if error is None:
            self.hooks["after_node_run"](node=node, outputs={}, **self.common)
        elif node in self.errors:
            self.hooks["on_node_error"](node=node, error=error, **self.common)

    def _raise_what_happened(self) -> None:
        number = self.stop.signal_number
        if number is not None or (self.interrupted and not self.errors):
            raise _interruption(self.interrupted, number)
        if not self.errors:
            return
        skipped = f", {len(self.schedule.skipped)} that need them were not run" if self.schedule.skipped else ""
        if len(self.errors) == 1:
            error = next(iter(self.errors.values()))
            if skipped:
                logger.error("1 node failed%s", skipped.replace("them", "it"))
            raise error
        for node, error in self.errors.items():
            logger.error("%s failed: %s", node.name, error, exc_info=None if isinstance(error, InputError) else error)
        raise NodesFailed(f"{len(self.errors)} nodes failed{skipped}: {', '.join(node.name for node in self.errors)}")


def _interruption(interrupted: list[TrainingInterrupted], number: int | None) -> TrainingInterrupted:
    """Make one error of those of all trainings, with the signal that this process has heard."""
    if len(interrupted) == 1:
        message = str(interrupted[0])
    else:
        places = [str(error).partition(";")[0].replace(": interrupted", "") for error in interrupted]
        message = f"interrupted: {', '.join(places) or 'no training was at work'}; the same command goes on from there"
    return TrainingInterrupted(message, number or interrupted[0].args[1])
