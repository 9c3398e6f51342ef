"""One node in any process, as the run would do it: with its hooks, its threads, and errors that can be sent back."""

import logging
import os
import pickle
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from kedro.framework.hooks import specs
from kedro.framework.hooks.markers import HOOK_NAMESPACE
from kedro.pipeline.node import Node
from kedro.runner.task import Task
from pluggy import PluginManager

from deephash_pipeline.common.devices import threads
from deephash_pipeline.common.errors import chain_of
from deephash_pipeline.project.freshness.graph import Catalog

PACKAGE_LOGGER = "deephash_pipeline"
IN_WORKER = "in_worker"
"""A method of hooks that work where a node runs: it gives the hook for another process, None for nothing. All others
work where the run was started."""


@dataclass(frozen=True)
class Job:
    """What processes need to run the nodes of one run; `cloudpickle` sends it, for Kedro's catalog needs that.

    Attributes:
        project: the folder that paths of the catalog are relative to.
        catalog: catalog with the parameters of the run.
        hooks: hooks that work where a node runs.
        run_id: identifier of the run of Kedro's session.
        log_level: level of the log of this package.
    """

    project: Path
    catalog: Catalog
    hooks: tuple[Any, ...] = ()
    run_id: str | None = None
    log_level: int = logging.INFO

    @classmethod
    def of(cls, catalog: Catalog, plugins: Iterable[Any], run_id: str | None) -> "Job":
        """Describe the run that this process has begun, with the hooks of plugins that have `IN_WORKER`."""
        hooks = tuple(hook for plugin in plugins if (hook := plugin.in_worker()) is not None)
        return cls(Path.cwd(), catalog, hooks, run_id, logging.getLogger(PACKAGE_LOGGER).getEffectiveLevel())


def hook_manager_of(hooks: Iterable[Any] = ()) -> PluginManager:
    """Make a manager of some hooks, which knows all that Kedro calls."""
    manager = PluginManager(HOOK_NAMESPACE)
    for called in (specs.NodeSpecs, specs.PipelineSpecs, specs.DataCatalogSpecs, specs.DatasetSpecs):
        manager.add_hookspecs(called)
    for hook in hooks:
        manager.register(hook)
    return manager


def run_node(job: Job, node: Node, thread_count: int = 1) -> None:
    """Run one node in this process and store what it makes, with manifests: what every worker does, wherever it is.

    Args:
        job: job of the run.
        node: one of it, whose inputs are stored.
        thread_count: threads to compute on.
    """
    os.chdir(job.project)
    logging.getLogger(PACKAGE_LOGGER).setLevel(job.log_level)
    hook_manager = hook_manager_of(job.hooks)
    with threads(thread_count):
        Task(node, job.catalog, is_async=False, hook_manager=hook_manager, run_id=job.run_id).execute()


def attempt(job: Job, node: Node, thread_count: int = 1) -> list[bytes]:
    """Do what `run_node` does, but return an error instead of raising it: as something that any process can read.

    Returns:
        The error and what it came from, each pickled, for pickle separates them; nothing if all went well.
    """
    try:
        run_node(job, node, thread_count)
    except Exception as error:
        error.add_note("".join(traceback.format_exception(error)))
        return [_pickled(link) for link in chain_of(error)]
    return []


def error_of(errors: list[bytes]) -> BaseException | None:
    """Put together again what `attempt` has returned."""
    chain: list[BaseException] = [pickle.loads(error) for error in errors]
    for error, cause in pairwise(chain):
        error.__cause__ = cause
    return chain[0] if chain else None


def _pickled(error: BaseException) -> bytes:
    try:
        content = pickle.dumps(error)
        pickle.loads(content)
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return content
