"""Kedro's runners for this project: side by side or one after the other, with equal results bit for bit.

A runner has three parts. The `NodeSchedule` says which node starts next, `Workers` are where it runs, and the `Loop`
starts nodes, calls the hooks that belong to where the run was started, and deals with errors. Another kind of workers,
on other machines, is a runner that overrides `open_workers` and `capacity`.
"""

import logging
from abc import abstractmethod
from contextlib import closing, nullcontext
from functools import partial
from typing import Annotated, Any, Literal

from joblib import cpu_count
from kedro.io import MemoryDataset
from kedro.pipeline import Pipeline
from kedro.runner import AbstractRunner
from psutil import virtual_memory
from pydantic import Field

from deephash_pipeline.common import fork_server
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.parameters import validated
from deephash_pipeline.common.scripts import refuse_unguarded_script
from deephash_pipeline.project.freshness import nodes_to_run
from deephash_pipeline.project.freshness.graph import Catalog
from deephash_pipeline.project.policy import Policy
from deephash_pipeline.project.runners.job import IN_WORKER, Job, hook_manager_of
from deephash_pipeline.project.runners.loop import NODE_HOOKS, Loop
from deephash_pipeline.project.runners.schedule import (
    Capacity,
    NodeSchedule,
    devices_of_run,
    needs_of,
    places_on_devices,
)
from deephash_pipeline.project.runners.workers import ThisProcess, WorkerProcesses, Workers
from deephash_pipeline.training import StopRequest, stop_requests

logger = logging.getLogger(__name__)

PRELOADED = "deephash_pipeline.project.runners.preloaded"
"""Module that is not imported here: it imports what only workers need."""

MOST_ROUNDS = 3
"""What was missing and is made again as it was not before leaves something else to make."""


class GridRunner(AbstractRunner):
    """Runs all nodes that are ready, as many at a time as there is room for, those with the longest way to go first.

    Args:
        workers: how many nodes run side by side at most; as many as there are cores by default.
        on_error: whether nodes that do not need a failed one still run (``continue``), or no more start (``stop``).
        is_async: argument of Kedro's interface.
        policy: how strict the run is.
        unknown: what there is not, such as a misspelt argument.

    Raises:
        InputError: an argument is unknown or out of its range, or `is_async`.
    """

    @partial(validated, skip=["policy"])
    def __init__(
        self,
        workers: Annotated[int, Field(ge=1)] | None = None,
        on_error: Literal["continue", "stop"] = "continue",
        is_async: bool = False,
        policy: Policy | None = None,
        **unknown: Any,
    ) -> None:
        super().__init__()
        self.policy = policy or Policy()
        if unknown:
            raise InputError(
                f"a runner knows no `{next(iter(unknown))}`: give workers or on_error, and to RayRunner address or gpus"
            )
        if is_async:
            raise InputError("nodes run side by side, and each loads one dataset after the other: leave out --async")
        self.workers = workers
        self.on_error = on_error

    @abstractmethod
    def open_workers(self, job: Job) -> Workers:
        """Get the places ready where the nodes of a run are to run."""

    @abstractmethod
    def capacity(self, catalog: Catalog) -> Capacity:
        """Say what may be taken up at the same time."""

    def run(
        self,
        pipeline: Pipeline,
        catalog: Catalog,
        hook_manager: Any = None,
        run_id: str | None = None,
        only_missing_outputs: bool = False,
    ) -> dict[str, Any]:
        """Run a pipeline, or what of it is not up to date. Hooks see the whole pipeline in either case."""
        hook_manager = hook_manager or hook_manager_of()
        if not self.policy.skipping:
            return dict(super().run(pipeline, catalog, hook_manager, run_id, only_missing_outputs))
        outputs: dict[str, Any] = {}
        done = set[str]()
        for _ in range(MOST_ROUNDS):
            waiting = nodes_to_run(pipeline, catalog, self.policy.stale_allowed, self.policy.whole)
            if done.issuperset(waiting):
                break
            if len(waiting) < len(pipeline.nodes):
                logger.info("%d nodes are up to date, %d are run", len(pipeline.nodes) - len(waiting), len(waiting))
            part = pipeline.only_nodes(*waiting)
            outputs = super().run(part, catalog, hook_manager, run_id, only_missing_outputs)
            done.update(waiting)
        return outputs

    @property
    # Private: Kedro would log its lines as this package's, whose own are shown.
    def _logger(self) -> logging.Logger:
        return logging.getLogger("kedro.runner")

    def _get_executor(self, max_workers: int) -> None:
        return None

    def _run(self, pipeline: Pipeline, catalog: Catalog, hook_manager: Any = None, run_id: str | None = None) -> None:
        unstored = sorted(name for name in pipeline.all_outputs() if isinstance(catalog[name], MemoryDataset))
        if unstored:
            raise InputError(
                f"`{unstored[0]}` is stored nowhere, and no later run finds it: give it an entry in the catalog"
            )
        common = {"catalog": catalog, "inputs": {}, "is_async": False, "run_id": run_id}
        in_workers = [plugin for plugin in hook_manager.get_plugins() if hasattr(plugin, IN_WORKER)]
        hooks = {name: partial(hook_manager.subset_hook_caller(name, in_workers), **common) for name in NODE_HOOKS}
        needs = partial(needs_of, catalog=catalog, cores=cpu_count())
        schedule = NodeSchedule(pipeline, self.capacity(catalog), needs, self.on_error == "stop")
        job = Job.of(catalog, in_workers, run_id)
        with (
            closing(self.open_workers(job)) as workers,
            # In this process signals are for the training that runs.
            stop_requests() if workers.in_background else nullcontext(StopRequest()) as stop,
        ):
            Loop(schedule, workers, stop, hooks).run()


class ParallelRunner(GridRunner):
    """Runs nodes in processes of this machine, one thread each unless a network needs more."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if self.policy.whole:
            fork_server.start(PRELOADED)

    def capacity(self, catalog: Catalog) -> Capacity:
        """Count cores, free memory and, where the run computes on CUDA, places on its devices."""
        return Capacity(self.workers or cpu_count(), virtual_memory().available, places_on_devices(catalog))

    def open_workers(self, job: Job) -> Workers:
        """Make a pool of processes."""
        refuse_unguarded_script()
        return WorkerProcesses(job, self.workers or cpu_count(), devices_of_run(job.catalog))

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
        return Capacity(1, virtual_memory().available, nodes=1)

    def open_workers(self, job: Job) -> Workers:
        """Use this process."""
        return ThisProcess(job)
