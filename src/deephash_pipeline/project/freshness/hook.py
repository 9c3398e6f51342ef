"""The Kedro hook that records what nodes make, and stops a run before its first node if it would read what is stale."""

import atexit
import logging
import os
import shlex
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from kedro.framework.context import KedroContext
from kedro.framework.hooks import hook_impl
from kedro.framework.project import pipelines
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.progress import duration
from deephash_pipeline.common.working_place import CODE_DIGEST, FORCED, WorkingPlace
from deephash_pipeline.pipelines.names import FIELD, TUNING
from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset
from deephash_pipeline.project.freshness.graph import Catalog, ProjectGraph
from deephash_pipeline.project.freshness.mending import mending_command, mending_commands_of_seeds
from deephash_pipeline.project.freshness.waiting import nodes_to_run, with_those_before
from deephash_pipeline.project.policy import Policy, without_policy
from deephash_pipeline.provenance import code_version
from deephash_pipeline.provenance.lock import RunLock, sweep
from deephash_pipeline.provenance.states import StateKind, summarised
from deephash_pipeline.training import CheckpointFolder

logger = logging.getLogger(__name__)


def refuse_what_is_stale(graph: ProjectGraph, pipeline: Pipeline, run_params: Mapping[str, Any], policy: Policy) -> str:
    """Return what the report's readers are to know of what is stale; nothing if nothing is.

    Raises:
        InputError: a run may not read what this one reads.
    """
    read = [(name, graph.state(name)) for name in map(graph.made_as, graph.stored(sorted(pipeline.inputs())))]
    faults = [(name, state) for name, state in read if state.kind is not StateKind.FRESH]
    if not faults:
        return ""
    missing = [name for name, state in faults if state.kind is StateKind.MISSING]
    if missing:
        more = f" and {len(missing) - 1} more are" if len(missing) > 1 else " is"
        raise InputError(
            f"{graph.path(missing[0])}{more} not there: run the stage that makes it, or "
            f"`{mending_command(missing, pipeline, graph.catalog, run_params, policy.conf_source)}`"
        )
    message = "; ".join(summarised(faults))
    damaged = any(state.kind is StateKind.DAMAGED for _, state in faults)
    if damaged or not policy.stale_allowed:
        # What is read only where it is there, and is not made by what makes all it needs.
        made = set[str]().union(*(pipelines[name].all_outputs() for name in ("full", FIELD, TUNING)), pipeline.inputs())
        others = {name: seed for name, _ in faults if (seed := graph.another_seed(name)) is not None}
        unneeded = [str(graph.path(name)) for name, _ in faults if name not in made and name not in others]
        if unneeded:
            remedy = f"delete {' and '.join(unneeded)}, which this run can do without"
        else:
            names = [name for name, _ in faults if name not in others]
            of_this_seed = [mending_command(names, pipeline, graph.catalog, run_params, policy.conf_source)]
            of_others = mending_commands_of_seeds(others.values(), run_params, policy.conf_source)
            commands = [*(of_this_seed if names else []), *of_others]
            remedy = f"{' and '.join(f'`{each}`' for each in commands)} makes again what is needed"
        raise InputError(f"{message}: {remedy}" + ("" if damaged else "; --stale=allow uses what is stale"))
    logger.warning("stale artefacts are used: %s", message)
    return f"Stale artefacts were used for this report: {message}."


MADE_HERE = "0[2-8]_*"
"""Folders of what runs make, in that of the data."""

RAW_IMAGES = "raw_images"
"""Dataset whose digest belongs to what is decoded of it."""

REPORT = "report"
"""How the names of pages end whose readers are told of the run."""


class Provenance:
    """Stops a run before its first node if it would read what is stale, and records what its nodes make.

    While it runs, no other run may work on the same benchmark. Outputs are recorded in the process that makes them.

    Args:
        policy: how strict runs are; of a session it is that of its command.
    """

    def __init__(self, policy: Policy | None = None) -> None:
        self._policy = policy or Policy()
        self._lock: RunLock | None = None
        self._nodes: list[Node] = []
        self._graph: ProjectGraph | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what another process finds for itself."""
        return {**vars(self), "_lock": None, "_graph": None}

    @hook_impl
    def after_context_created(self, context: KedroContext) -> None:
        """Take the policy that the command has given."""
        self._policy = getattr(context.config_loader, "policy", Policy())

    @hook_impl
    def before_pipeline_run(self, run_params: dict[str, Any], pipeline: Pipeline, catalog: Catalog) -> None:
        """Take the lock, and compare what this run reads with what it would make itself.

        Raises:
            InputError: another run has the lock, or something is stale, damaged or without a manifest, or pages cannot
                have the date that SOURCE_DATE_EPOCH gives them.
        """
        self._end()
        run_params = {**run_params, "runtime_params": without_policy(run_params.get("runtime_params"))[0]}
        # A date that cannot be is refused here, not when the report begins.
        _written(0)
        graph = ProjectGraph(with_those_before(pipeline, catalog), catalog)
        if (folder := graph.benchmark_folder) is not None:
            self._lock = RunLock(folder)
            # An interrupted run reaches no hook.
            atexit.register(self._end)
            self._lock.take()
            # Raw images are not ours, whatever they are called.
            sweep(folder.parents[1].glob(f"{MADE_HERE}/{folder.name}"))
        try:
            if self._policy.skipping and (self._policy.stale_allowed or not self._policy.whole):
                # What is up to date reads nothing.
                waiting = nodes_to_run(pipeline, catalog, self._policy.stale_allowed, self._policy.whole)
                pipeline = pipeline.only_nodes(*waiting)
            self._banner = refuse_what_is_stale(graph, pipeline, run_params, self._policy)
        except InputError:
            self._end()
            raise
        self._forced = uuid4().hex if self._policy.forced else ""
        self._began, self._command, self._code = time.time(), command(), code_version(Path(run_params["project_path"]))
        self._nodes, self._graph = graph.nodes, graph

    @hook_impl
    def before_node_run(self, node: Node, catalog: Catalog, inputs: dict[str, Any]) -> dict[str, Any] | None:
        """Tell whoever keeps something what it is made by; tell the report's readers the time, and what is stale."""
        if not self._nodes:
            return None
        if self._graph is None or self._graph.catalog is not catalog:
            self._graph = ProjectGraph(self._nodes, catalog)
        raw = {name: str(self._graph.state(name).digest) for name in inputs if name == RAW_IMAGES}
        for value in inputs.values():
            if isinstance(value, CheckpointFolder | WorkingPlace):
                value.provenance.update({CODE_DIGEST: self._graph.code(node), FORCED: self._forced, **raw})
        if not any(name.rpartition(".")[2] == REPORT for name in node.outputs):
            return None
        banner, written = (self._banner,) if self._banner else (), _written(time.time() - self._began)
        return {
            name: value.model_copy(update={"notes": (*banner, *value.notes), "written": written})
            for name, value in inputs.items()
            if hasattr(value, "notes")
        }

    @hook_impl
    def before_dataset_saved(self, dataset_name: str, node: Node) -> None:
        """Tell the dataset what its content was made from."""
        dataset = self._graph.catalog.get(dataset_name) if self._graph is not None else None
        if self._graph is not None and isinstance(dataset, AtomicFileDataset):
            dataset.expect(dataset_name, self._graph.origin(node, self._code, self._command))

    def in_worker(self) -> Self | None:
        """Give the hook for another process; None outside a run."""
        return self if self._nodes else None

    # The lock covers what other hooks still have to write, and what is left of it says that they have not.
    @hook_impl(trylast=True)
    def after_pipeline_run(self) -> None:
        """Give the lock back."""
        self._end()

    @hook_impl(trylast=True)
    def on_pipeline_error(self) -> None:
        """Give the lock back."""
        self._end()

    def _end(self) -> None:
        lock, self._lock = self._lock, None
        self._nodes, self._graph = [], None
        atexit.unregister(self._end)
        if lock is not None:
            lock.give_back()


def command() -> str:
    """Give the command of this process."""
    program = Path(sys.argv[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    return f"{name} {shlex.join(sys.argv[1:])}"


def _written(seconds: float) -> dict[str, str]:
    """Say when a page is written, so many seconds after its run began; pages of one SOURCE_DATE_EPOCH are the same.

    Raises:
        InputError: its year has five digits or more.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    try:
        at = datetime.fromtimestamp(int(given) if given.isdecimal() else time.time(), UTC)
    except (OSError, OverflowError, ValueError) as error:
        raise InputError(f"SOURCE_DATE_EPOCH is {given}: give seconds since 1970, to the year 9999 at most") from error
    took = {} if given.isdecimal() else {"Last run": f"{duration(seconds)} up to this page"}
    return {"Written": f"{at.day} {at:%B %Y, %H:%M} UTC", **took}
