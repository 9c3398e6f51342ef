"""Workers that are tasks on a Ray cluster: a runner for more than one machine.

Nothing of Ray is imported before a run begins.
"""

from concurrent.futures import Future
from functools import lru_cache
from typing import Any

import cloudpickle
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from deephash_pipeline.common.parameters import validated
from deephash_pipeline.common.ray_cluster import connected_to_ray
from deephash_pipeline.project.freshness.graph import Catalog
from deephash_pipeline.project.runners.job import Job, attempt, error_of
from deephash_pipeline.project.runners.runner import GridRunner
from deephash_pipeline.project.runners.schedule import Capacity, Needs, device_asked_for, uses_device
from deephash_pipeline.project.runners.workers import WorkerLost, Workers


class RayRunner(GridRunner):
    """Runs nodes as tasks on a Ray cluster, each with its cores and memory; one whose machine is lost runs again.

    All machines must see the project's folder under the same path, and its `data`, unless that is in an object store.

    Args:
        address: address of the cluster, ``auto`` for the one that this machine is a node of, or ``ray://host:port``;
            None for one on this machine.
        gpus: share of a CUDA device for nodes that compute on it, where the cluster has devices; others see none.
        options: see `GridRunner`.
    """

    @validated
    def __init__(self, address: str | None = None, gpus: float = 0.25, **options: Any) -> None:
        super().__init__(**options)
        self.address = address
        self.gpus = gpus
        self._ray: Any = None

    def run(self, pipeline: Pipeline, catalog: Catalog, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Run a pipeline, or what of it is not up to date.

        Raises:
            InputError: there is no Ray or no cluster, or a dataset would live in memory.
        """
        with connected_to_ray(self.address, self.workers) as self._ray:
            return super().run(pipeline, catalog, *arguments, **options)

    def capacity(self, catalog: Catalog) -> Capacity:
        """Count cores and memory of the cluster."""
        there = self._ray.cluster_resources()
        return Capacity(self.workers or max(1, int(there.get("CPU", 1))), int(there.get("memory", 0)))

    def open_workers(self, job: Job) -> Workers:
        """Send the run to the cluster, once."""
        return RayTasks(self._ray, job, 0.0 if device_asked_for(job.catalog) == "cpu" else self.gpus)


class RayTasks(Workers):
    """Nodes as tasks.

    Args:
        ray: the module, connected.
        job: job of the run.
        gpus: see `RayRunner`.
    """

    def __init__(self, ray: Any, job: Job, gpus: float) -> None:
        self._ray = ray
        self._job = ray.put(cloudpickle.dumps(job))
        self._task = self._on_a_device = ray.remote(_attempt)
        self._gpus = gpus
        if gpus and ray.cluster_resources().get("GPU"):
            # Workers that have opened a device would keep it, so each has one task; others would see all devices.
            self._on_a_device = ray.remote(num_gpus=gpus, max_calls=1)(_attempt)
            self._task = ray.remote(runtime_env={"env_vars": {"CUDA_VISIBLE_DEVICES": ""}})(_attempt)
        self._under_way: dict[str, Any] = {}

    def submit(self, node: Node, needs: Needs) -> Future[None]:
        """Have the cluster run a node, on the first machine that has room for it."""
        machines = [each["Resources"] for each in self._ray.nodes() if each["Alive"]]

        def most(resource: str) -> float:
            return max((machine.get(resource, 0) for machine in machines), default=0)

        task = (self._on_a_device if uses_device(node) else self._task).options(
            name=node.name,
            # What no machine has would wait for ever.
            num_cpus=min(needs.threads, int(most("CPU")) or 1),
            memory=min(needs.memory, int(most("memory"))),
            num_gpus=min(self._gpus, most("GPU")) if uses_device(node) else 0,
            # The runner itself sends it again.
            max_retries=0,
        )
        reference = task.remote(self._job, cloudpickle.dumps(node), needs.threads)
        self._under_way[node.name] = reference
        ended: Future[None] = Future()
        # Cancelling is for `ask_to_stop`: a future that runs takes its result in any case.
        ended.set_running_or_notify_cancel()
        reference.future().add_done_callback(lambda future: self._end(node, future, ended))
        return ended

    def ask_to_stop(self) -> None:
        """Raise KeyboardInterrupt in tasks, which a training answers with a checkpoint."""
        for reference in list(self._under_way.values()):
            self._ray.cancel(reference, force=False)

    def close(self) -> None:
        """End what is still at work."""
        for reference in list(self._under_way.values()):
            self._ray.cancel(reference, force=True)

    def _end(self, node: Node, future: Future[list[bytes]], ended: Future[None]) -> None:
        self._under_way.pop(node.name, None)
        error = future.exception()
        if error is None:
            failure = error_of(future.result())
            ended.set_result(None) if failure is None else ended.set_exception(failure)
        elif isinstance(error, self._ray.exceptions.RayTaskError):
            ended.set_exception(error.cause if isinstance(error.cause, Exception) else error)
        else:
            reason = " ".join(str(error).split())[:200]
            ended.set_exception(WorkerLost(f"{node.name}: its worker was lost ({type(error).__name__}: {reason})"))


def _attempt(job: bytes, node: bytes, thread_count: int) -> list[bytes]:
    """Run a node, in a worker."""
    return attempt(_loaded(job), cloudpickle.loads(node), thread_count)


@lru_cache(maxsize=1)
def _loaded(job: bytes) -> Job:
    """Load the job of a run once in each worker, as its hooks keep what they have found out."""
    loaded: Job = cloudpickle.loads(job)
    return loaded
