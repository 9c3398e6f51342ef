"""The Kedro hook that records what nodes make, and stops a run before its first node if it would read what is stale."""

import atexit
import json
import os
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

from kedro.framework.hooks import hook_impl
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.progress import duration
from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset
from deephash_pipeline.project.freshness.graph import Catalog, ProjectGraph, with_those_before
from deephash_pipeline.project.freshness.refusal import POLICY, refuse_what_is_stale
from deephash_pipeline.provenance import (
    Origin,
    RunLock,
    code_version,
    sweep,
    text_digest,
)
from deephash_pipeline.training import CheckpointFolder
from deephash_pipeline.training.resuming.checkpoint import CODE, FORCED

REPORT = "report"
"""How the names of pages end whose readers are told of the run."""


class Recorder:
    """Records what nodes make, in the process that runs them.

    Args:
        nodes: of the graph.
        project: whose code it is.
        banner: what the report says at its head; empty if nothing.
        forced: name of the run if it trains anew; empty if not.
    """

    def __init__(self, nodes: Sequence[Node], project: Path, banner: str, forced: str = "") -> None:
        self._forced = forced
        self._began = time.time()
        self._nodes = list(nodes)
        self._project = project
        self._banner = banner
        self._command = command()
        self._catalog: Catalog | None = None
        self._graph: ProjectGraph | None = None
        self._origins: dict[str, Origin] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what another process finds for itself; but look up the code once, for all of them."""
        return {"_code": self._code, **vars(self), "_catalog": None, "_graph": None, "_origins": {}}

    def start(self, catalog: Catalog, graph: ProjectGraph | None = None) -> None:
        """Work on a catalog, in another process on the one that was sent there."""
        self._catalog, self._graph = catalog, graph or ProjectGraph(self._nodes, catalog)

    @hook_impl
    def before_node_run(self, node: Node, catalog: Catalog, inputs: dict[str, Any]) -> dict[str, Any] | None:
        """Tell a training by which code it is; tell the report's readers the time, and what is stale."""
        if self._graph is None or self._catalog is not catalog:
            self.start(catalog)
        assert self._graph is not None, "it has been started"
        # In a later round its inputs may be others.
        self._origins.pop(node.name, None)
        for value in inputs.values():
            if isinstance(value, CheckpointFolder):
                value.provenance |= {
                    CODE: text_digest(json.dumps(self._graph.step(node).sources)),
                    FORCED: self._forced,
                }
        if any(name.rpartition(".")[2] == REPORT for name in node.outputs):
            banner = (self._banner,) if self._banner else ()
            return {
                name: value.model_copy(
                    update={"notes": (*banner, *value.notes), "written": _written(time.time() - self._began)}
                )
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
                self._origins[node.name] = self._graph.lineage.origin(
                    step, self._code, self._command, self._graph.resolved(node)
                )
            dataset.expect(dataset_name, self._origins[node.name])

    @cached_property
    def _code(self) -> dict[str, str]:
        return code_version(self._project)


class Provenance:
    """Stops a run before its first node if it would read what is stale, and records what its nodes make.

    While it runs, no other run may work on the same benchmark.
    """

    def __init__(self) -> None:
        self._recorder: Recorder | None = None
        self._lock: RunLock | None = None
        self._forced: Path | None = None

    @hook_impl
    def before_pipeline_run(self, run_params: dict[str, Any], pipeline: Pipeline, catalog: Catalog) -> None:
        """Take the lock, and compare what this run reads with what it would make itself.

        Raises:
            InputError: another run has the lock, or something is stale, damaged or without a manifest.
        """
        self._end()
        graph = ProjectGraph(with_those_before(pipeline, catalog), catalog)
        if graph.benchmark_folder is not None:
            self._lock = RunLock(graph.benchmark_folder)
            # An interrupted run reaches no hook.
            atexit.register(self._end)
            self._lock.take()
            self._forced = graph.benchmark_folder / FORCED
            sweep(graph.benchmark_folders())
        try:
            banner = refuse_what_is_stale(graph, pipeline, run_params)
        except InputError:
            self._end()
            raise
        forced = _forced_run(self._forced) if POLICY.forced else ""
        self._recorder = Recorder(graph.nodes, Path(run_params["project_path"]), banner, forced)
        self._recorder.start(catalog, graph)

    @hook_impl
    def before_node_run(self, node: Node, catalog: Catalog, inputs: dict[str, Any]) -> dict[str, Any] | None:
        """Do what the recorder does."""
        return self._recorder.before_node_run(node, catalog, inputs) if self._recorder else None

    @hook_impl
    def before_dataset_saved(self, dataset_name: str, node: Node) -> None:
        """Do what the recorder does."""
        if self._recorder is not None:
            self._recorder.before_dataset_saved(dataset_name, node)

    def in_worker(self) -> Recorder | None:
        """Give the hook for another process; None outside a run."""
        return self._recorder

    # The lock covers what other hooks still have to write, and a file of it that is left says that they have not.
    @hook_impl(trylast=True)
    def after_pipeline_run(self) -> None:
        """Give the lock back; the next run with --force is another one."""
        if self._forced is not None:
            self._forced.unlink(missing_ok=True)
        self._end()

    @hook_impl(trylast=True)
    def on_pipeline_error(self) -> None:
        """Give the lock back."""
        self._end()

    def _end(self) -> None:
        lock, self._lock = self._lock, None
        self._recorder = self._forced = None
        atexit.unregister(self._end)
        if lock is not None:
            lock.give_back()


def command() -> str:
    """Give the command of this process."""
    program = Path(sys.argv[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    return f"{name} {shlex.join(sys.argv[1:])}"


def _written(seconds: float) -> dict[str, str]:
    """Say when a page is written, so many seconds after its run began; pages of one SOURCE_DATE_EPOCH are the same."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    at = datetime.fromtimestamp(int(given) if given.isdecimal() else time.time(), UTC)
    took = {} if given.isdecimal() else {"Last run": f"{duration(seconds)} up to this page"}
    return {"Written": f"{at.day} {at:%B %Y, %H:%M} UTC", **took}


def _forced_run(file: Path | None) -> str:
    """Name a run with --force; the same command, interrupted, goes on under its name with what it has trained."""
    with suppress(OSError):
        name, _, of = file.read_text(encoding="utf-8").partition(" ") if file else ("", "", "")
        if name and of == command():
            return name
    name = uuid4().hex
    if file is not None:
        file.write_text(f"{name} {command()}", encoding="utf-8")
    return name
