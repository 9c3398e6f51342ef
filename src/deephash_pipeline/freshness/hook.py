"""The Kedro hook that records what nodes make, and stops a run before its first node if it would read what is stale."""

import json
import logging
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.framework.project import pipelines
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from deephash_pipeline.datasets.atomic_file import AtomicFileDataset
from deephash_pipeline.errors import InputError
from deephash_pipeline.freshness.graph import Catalog, ProjectGraph, flatten, is_parameter
from deephash_pipeline.grid import FIELD
from deephash_pipeline.provenance import (
    Kind,
    Origin,
    RunLock,
    Source,
    State,
    Step,
    code_version,
    everything_read,
    summarised,
    sweep,
    text_digest,
)
from deephash_pipeline.training import CheckpointFolder

logger = logging.getLogger(__name__)

SOURCES = "sources"
"""Key of the digest of the code in what a checkpoint keeps beside the training's state."""


@dataclass
class Policy:
    """How strict runs are.

    Attributes:
        stale_allowed: whether a run may read what is stale.
    """

    stale_allowed: bool = False


POLICY = Policy()


@contextmanager
def policy(*, stale_allowed: bool = False, verify_fully: bool = False) -> Iterator[None]:
    """Run with another policy within it: `stale_allowed`, or with all files read whole."""
    before, POLICY.stale_allowed = POLICY.stale_allowed, stale_allowed
    try:
        with everything_read(verify_fully):
            yield
    finally:
        POLICY.stale_allowed = before


class Provenance:
    """Stops a run before its first node if it would read what is stale, and records what its nodes make.

    While it runs, no other run may work on the same benchmark.
    """

    def __init__(self) -> None:
        self._graph: ProjectGraph | None = None
        self._catalog: Catalog | None = None
        self._lock: RunLock | None = None
        self._origins: dict[str, Origin] = {}
        self._project = Path()
        self._banner = ""

    @hook_impl
    def before_pipeline_run(self, run_params: dict[str, Any], pipeline: Pipeline, catalog: Catalog) -> None:
        """Take the lock, and compare what this run reads with what it would make itself.

        Raises:
            InputError: another run has the lock, or something is stale, damaged or without a manifest.
        """
        self._end()
        known = (node for other in pipelines.values() for node in other.nodes)
        graph = ProjectGraph([*pipeline.nodes, *known], catalog)
        self._origins, self._banner = {}, ""
        self._project = Path(run_params["project_path"])
        if graph.benchmark_folder is not None:
            self._lock = RunLock(graph.benchmark_folder)
            self._lock.take()
            sweep(graph.benchmark_folders())
        try:
            self._refuse_what_is_stale(graph, pipeline, run_params)
        except InputError:
            self._end()
            raise
        self._graph, self._catalog = graph, catalog

    @hook_impl
    def before_node_run(self, node: Node, catalog: Catalog, inputs: dict[str, Any]) -> dict[str, Any] | None:
        """Start a training over if its code has changed; name what is stale to the report's readers."""
        if self._graph is None:
            return None
        # In a process of a ParallelRunner it is not the one that the run began with.
        self._catalog = catalog
        for value in inputs.values():
            if isinstance(value, CheckpointFolder):
                _start_over_if_changed(value, self._graph.step(node))
        if self._banner and {"report", f"{FIELD}.report"} & set(node.outputs):
            return {
                name: value.model_copy(update={"notes": (self._banner, *value.notes)})
                for name, value in inputs.items()
                if hasattr(value, "notes")
            }
        return None

    @hook_impl
    def before_dataset_saved(self, dataset_name: str, node: Node) -> None:
        """Tell the dataset what its content was made from."""
        if self._graph is None or self._catalog is None:
            return
        dataset = self._catalog.get(dataset_name)
        if isinstance(dataset, AtomicFileDataset):
            if node.name not in self._origins:
                step = self._graph.step(node)
                self._origins[node.name] = self._graph.lineage.origin(step, self._code, command())
            dataset.expect(dataset_name, self._origins[node.name])

    @hook_impl
    def after_pipeline_run(self) -> None:
        """Give the lock back."""
        self._end()

    @hook_impl
    def on_pipeline_error(self) -> None:
        """Give the lock back."""
        self._end()

    @cached_property
    def _code(self) -> dict[str, str]:
        return code_version(self._project)

    def _end(self) -> None:
        lock, self._lock = self._lock, None
        self._graph = self._catalog = None
        self.__dict__.pop("_code", None)
        if lock is not None:
            lock.give_back()

    def _refuse_what_is_stale(self, graph: ProjectGraph, pipeline: Pipeline, run_params: Mapping[str, Any]) -> None:
        faults = list(_faults(graph, pipeline))
        if not faults:
            return
        missing = [graph.lineage.artefacts[name].path for name, state in faults if state.kind is Kind.MISSING]
        if missing:
            more = f" and {len(missing) - 1} more are" if len(missing) > 1 else " is"
            raise InputError(
                f"{missing[0]}{more} not there: run the stage that makes it, or `{_mending_command(run_params)}`"
            )
        message = "; ".join(summarised(faults))
        if not POLICY.stale_allowed or any(state.kind is Kind.DAMAGED for _, state in faults):
            raise InputError(
                f"{message}: `{_mending_command(run_params)}` makes again what is needed; "
                "--stale=allow uses what is stale"
            )
        logger.warning("stale artefacts are used: %s", message)
        self._banner = f"Stale artefacts were used for this report: {message}."


def command() -> str:
    """Give the command of this process."""
    program = Path(sys.argv[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    return f"{name} {shlex.join(sys.argv[1:])}"


def _faults(graph: ProjectGraph, pipeline: Pipeline) -> Iterator[tuple[str, State]]:
    """Yield what a pipeline reads, does not make, and should not read."""
    for name in sorted(pipeline.inputs()):
        if is_parameter(name):
            continue
        artefact = graph.artefact(name)
        if artefact is None or isinstance(artefact, Source):
            continue
        state = graph.lineage.state(name)
        if state.kind is not Kind.FRESH:
            yield name, state


def _mending_command(run_params: Mapping[str, Any]) -> str:
    words = ["kedro", "run", "--pipelines=full"]
    if run_params.get("env"):
        words.append(f"--env={run_params['env']}")
    given = flatten("", run_params.get("runtime_params") or {})
    if given:
        words.append("--params=" + ",".join(f"{name}={value}" for name, value in given.items()))
    return shlex.join(words)


def _start_over_if_changed(checkpoints: CheckpointFolder, step: Step) -> None:
    """Remove the checkpoints of a training that other code has made: what it would give back is not its result."""
    current = text_digest(json.dumps(step.sources))
    checkpoints.provenance[SOURCES] = current
    documents = sorted(checkpoints.folder.glob("checkpoint-*.json"))
    if not documents:
        return
    with suppress(OSError, ValueError, KeyError, TypeError):
        recorded = json.loads(documents[-1].read_bytes())["content"]["provenance"].get(SOURCES)
        if recorded != current:
            logger.info("%s: its code has changed, training starts anew", step.name)
            checkpoints.clear()
