"""The MLflow hook: a parent run for every `kedro run`, a child run for every cell.

A cell is logged as soon as it is measured, by the process that the run was started in; one that is only trained, at the
end. Of a cell that an earlier run has made, or made with the same metrics, the parent has the score, and there is no
second child: a search for the best mAP gives each cell once. MLflow takes seconds to start: it does so in a thread,
while nodes begin. Tracking is never worth a training: what fails here is a warning.
"""

import atexit
import logging
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.io import DataCatalog
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.pipelines.grid import CLASSIFIER_BASELINE, METHODS
from deephash_pipeline.pipelines.names import FIELD
from deephash_pipeline.project.tracking.description import (
    LONGEST_TAG,
    benchmark_of,
    consumed_parameters,
    epoch_metrics,
    is_number,
    manifest_facts,
    run_name,
    run_tags,
    stored_file,
)
from deephash_pipeline.project.tracking.store import PARENT_TAG, Metric, MlflowStore
from deephash_pipeline.reports.notes import CHANCE_REMEDY, learned_little
from deephash_pipeline.training import TrainingInterrupted

logger = logging.getLogger(__name__)

CELL_SUFFIXES = METRICS, HISTORY = ".metrics", ".history"
CURVES = ".curves"
MODELS = (".hasher", ".encoder")
"""Datasets with what a cell encodes by."""
PRE_TRAINING_HISTORY = "pre_training_history"
ALL_METRICS = ("all_metrics", f"{FIELD}.all_metrics")
PAGES = ("report", "gallery", f"{FIELD}.report", f"{FIELD}.gallery")
TABLE_SUFFIX = "_table"
SCORE_METRIC = "mean_average_precision"


class MlflowTracking:
    """Writes every run to `mlflow.db` and `mlartifacts/` in the project's root, from whatever folder it is started."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._opening: Future[tuple[MlflowStore, str]] | None = None
        self._started: dict[str, float] = {}
        self._began: dict[str, float] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._seen: set[str] = set()

    @hook_impl
    def before_pipeline_run(self, run_params: dict[str, Any], pipeline: Pipeline, catalog: DataCatalog) -> None:
        """Open the parent run: the parameters that the pipeline consumes; where, how and from what code it runs."""
        self._close("KILLED")
        with _only_a_warning("open a run"):
            project = Path(run_params["project_path"]).resolve()
            tags = run_tags(run_params, project) | {"benchmark": benchmark_of(catalog)}
            self._begin()
            thread = ThreadPoolExecutor(1, "mlflow")
            name = run_name(run_params)
            self._opening = thread.submit(_open, project, name, consumed_parameters(pipeline, catalog), tags)
            thread.shutdown(wait=False)
            # An interrupted run reaches no hook.
            atexit.register(self._close, "KILLED")

    @hook_impl
    def before_node_run(self, node: Node) -> None:
        """Note when a node begins."""
        self._started[node.name] = time.time()

    @hook_impl
    def after_node_run(self, node: Node, catalog: DataCatalog) -> None:
        """Log what a node has made and stored, and how long its cell has taken so far."""
        now = time.time()
        start = self._started.pop(node.name, now)
        cell = node.outputs[0].rpartition(".")[0]
        self._began.setdefault(cell, start)
        self._seconds[cell] += now - start
        for name in node.outputs:
            if not name.endswith(HISTORY):
                self._log(name, catalog)

    @hook_impl
    def after_pipeline_run(self, pipeline: Pipeline, catalog: DataCatalog) -> None:
        """Log what the run has read; close the run."""
        # With the metrics of a cell its history is logged.
        for name in sorted(pipeline.datasets(), key=lambda name: (name.endswith(HISTORY), name)):
            self._log(name, catalog)
        self._close("FINISHED")

    @hook_impl
    def on_pipeline_error(self, error: Exception, pipeline: Pipeline, catalog: DataCatalog) -> None:
        """Close the run as failed, or as killed if somebody stopped it, with the error's text as a tag."""
        status = "KILLED" if isinstance(error, TrainingInterrupted) else "FAILED"
        for name in sorted(pipeline.datasets()):
            if name.endswith(HISTORY) and name.removesuffix(HISTORY) in self._began:
                self._log(name, catalog, status)
        self._close(status, {"error": f"{type(error).__name__}: {error}"[:LONGEST_TAG]})

    def _opened(self) -> tuple[MlflowStore, str] | None:
        """Give the store and the parent run, as soon as it is open; None if there is none, or no more."""
        with _only_a_warning("open a run"):
            return None if self._opening is None else self._opening.result()
        self._opening = None
        return None

    def _log(self, name: str, catalog: DataCatalog, status: str = "FINISHED") -> None:
        """Log a dataset, or the cell that it is of, once, if it is one of those that are logged and if it is there."""
        of = name.rpartition(".")[0] if name.endswith(CELL_SUFFIXES) else name
        is_logged = of != name or name.endswith(TABLE_SUFFIX) or name in (*PAGES, PRE_TRAINING_HISTORY, *ALL_METRICS)
        if not is_logged or of in self._seen or not catalog.exists(name) or (opened := self._opened()) is None:
            return
        store, parent = opened
        self._seen.add(of)
        with _only_a_warning(f"log {name}"):
            if of != name:
                metrics = catalog.load(name) if name.endswith(METRICS) else {}
                if of in self._began:
                    self._log_cell(opened, of, metrics, catalog, status)
                store.log(parent, _score(of, metrics))
                return
            value = catalog.load(name)
            if name == PRE_TRAINING_HISTORY:
                store.log(parent, epoch_metrics(value))
            elif name in ALL_METRICS:
                store.log(parent, [score for metrics in value for score in _score(_cell_of(metrics), metrics)])
            elif name.endswith(TABLE_SUFFIX):
                store.write(parent, f"{name}.csv", value.to_csv(index=value.index.name is not None))
            else:
                store.write(parent, f"{name}.html", value)

    def _log_cell(
        self, opened: tuple[MlflowStore, str], cell: str, metrics: dict[str, Any], catalog: DataCatalog, status: str
    ) -> None:
        """Write the child run of a cell: its metrics, history, curves and model, and what it was made from and with."""
        store, parent = opened
        tags, parameters = manifest_facts(catalog, f"{cell}{METRICS if metrics else HISTORY}")
        digest = f"digest.{cell}{METRICS}"
        # `--force` measured the same once more.
        if digest in tags and store.has_finished(cell, digest, tags[digest]):
            return
        history, curves = f"{cell}{HISTORY}", f"{cell}{CURVES}"
        identity = {key: str(metrics[key]) for key in ("method", "code_length") if metrics}
        if metrics:
            identity["method_name"] = METHODS.get(identity["method"], identity["method"])
        logged: list[Metric] = [
            (key, value, 0) for key, value in metrics.items() if key not in identity and is_number(value)
        ]
        logged.append(("seconds", self._seconds[cell], 0))
        if catalog.exists(history):
            logged += epoch_metrics(catalog.load(history))
        table = catalog.load(curves) if catalog.exists(curves) else None
        if learned_little(metrics):
            tags["learned_little"] = CHANCE_REMEDY
        model = next((file for suffix in MODELS if (file := stored_file(catalog, f"{cell}{suffix}"))), None)
        # All is read by now, so a file that cannot be read leaves no child run that is never closed.
        run = store.open(cell, {PARENT_TAG: parent}, self._began[cell])
        if table is not None:
            store.write(run, "curves.csv", table.to_csv(index=False))
        if model is not None:
            tags["model"] = os.path.relpath(model, store.project)
            store.link(run, model)
        store.log(run, logged, parameters | identity, tags)
        store.close(run, status)

    def _close(self, status: str, tags: Mapping[str, str] | None = None) -> None:
        opened, self._opening = self._opened(), None
        with _only_a_warning("close the run"):
            if opened is not None:
                store, parent = opened
                store.log(parent, tags=tags)
                store.close(parent, status)


def _open(project: Path, name: str, parameters: dict[str, str], tags: dict[str, str]) -> tuple[MlflowStore, str]:
    """Open a new run. No other of the benchmark is at work: each has its lock."""
    store = MlflowStore(project, tags["benchmark"])
    store.end_killed_runs()
    run = store.open(name, tags)
    store.log(run, parameters=parameters)
    return store, run


def _cell_of(metrics: dict[str, Any]) -> str:
    length = None if metrics["method"] == CLASSIFIER_BASELINE.method else metrics["code_length"]
    return Cell(method=metrics["method"], code_length=length).namespace


def _score(cell: str, metrics: dict[str, Any]) -> list[Metric]:
    return [(f"map/{cell}", metrics[SCORE_METRIC], 0)] if is_number(metrics.get(SCORE_METRIC)) else []


@contextmanager
def _only_a_warning(action: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # The first line of SQLAlchemy's, which are followed by its statement.
        said = (str(error).splitlines() or [""])[0]
        logger.warning(f"MLflow could not {action}, and the run goes on without it: {type(error).__name__}: {said}")
