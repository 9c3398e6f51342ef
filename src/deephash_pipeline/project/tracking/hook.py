"""The MLflow hook: a parent run for every `kedro run`, a child run for every cell.

A cell's history and metrics are logged as soon as a node has made them, by the process that the run was started in;
where a run only reads what an earlier one has made, at its end. MLflow takes seconds to start: it does so in a thread,
while nodes begin. Tracking is never worth a training: what fails here is a warning.
"""

import atexit
import logging
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

from deephash_pipeline.common.cell import FIELD, Cell
from deephash_pipeline.pipelines.grid import CLASSIFIER_BASELINE
from deephash_pipeline.project.tracking.description import (
    LONGEST_TAG,
    benchmark_of,
    consumed_parameters,
    epoch_metrics,
    facts_of,
    is_number,
    run_tags,
)
from deephash_pipeline.project.tracking.store import Metric, OpenRun
from deephash_pipeline.training import TrainingInterrupted

logger = logging.getLogger(__name__)

METRICS_SUFFIX = ".metrics"
HISTORY_SUFFIX = ".history"
PRE_TRAINING_HISTORY = "pre_training_history"
ALL_METRICS = "all_metrics"
OF_FIELD = f"{FIELD}."
PAGES = ("report", "gallery")
TABLE_SUFFIX = "_table"
SCORE = "mean_average_precision"


class MlflowTracking:
    """Writes every run to `mlflow.db` and `mlartifacts/` in the project's root, from whatever folder it is started."""

    def __init__(self) -> None:
        self._begin(set())

    def _begin(self, cells: set[str]) -> None:
        self._opening: Future[OpenRun] | None = None
        self._cells = cells
        self._started: dict[str, float] = {}
        self._began: dict[str, float] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._seen: set[str] = set()
        self._logged: dict[str, str] = {}
        self._scores: dict[str, float] = {}

    @hook_impl
    def before_pipeline_run(self, run_params: dict[str, Any], pipeline: Pipeline, catalog: DataCatalog) -> None:
        """Open the parent run: the parameters that the pipeline consumes; where, how and from what code it runs."""
        self._close("KILLED")
        with _only_a_warning("open a run"):
            project = Path(run_params["project_path"]).resolve()
            benchmark = benchmark_of(catalog)
            parameters = consumed_parameters(pipeline, catalog)
            tags = run_tags(run_params, project) | {"benchmark": benchmark}
            self._begin(set(filter(None, map(_cell, pipeline.datasets()))))
            thread = ThreadPoolExecutor(1, "mlflow")
            self._opening = thread.submit(OpenRun.open, project, parameters, tags)
            thread.shutdown(wait=False)
            # An interrupted run reaches no hook.
            atexit.register(self._close, "KILLED")

    def _opened(self) -> OpenRun | None:
        """Give the parent run, as soon as it is open; None if there is none, or no more."""
        with _only_a_warning("open a run"):
            return None if self._opening is None else self._opening.result()
        self._opening = None
        return None

    @hook_impl
    def before_node_run(self, node: Node) -> None:
        """Note when a node begins."""
        self._started[node.name] = time.time()

    @hook_impl
    def after_node_run(self, node: Node, catalog: DataCatalog, outputs: dict[str, Any]) -> None:
        """Log what a node has made, and how long its cell has taken so far."""
        now = time.time()
        start = self._started.pop(node.name, now)
        parts = (node.namespace or "").split(".")
        # The cell is what follows the stage: two names, with a replicate three.
        cell = next((found for at in range(len(parts)) if (found := ".".join(parts[at:])) in self._cells), None)
        if cell is not None:
            self._began.setdefault(cell, start)
            self._seconds[cell] += now - start
        for name in sorted(node.outputs):
            self._log(name, catalog, outputs)

    @hook_impl
    def after_pipeline_run(self, pipeline: Pipeline, catalog: DataCatalog) -> None:
        """Log what the run has read, and what cells were made from; close the run."""
        for name in sorted(pipeline.datasets()):
            self._log(name, catalog, {})
        with _only_a_warning("log the digests"):
            if (opened := self._opened()) is not None:
                for cell, run in self._logged.items():
                    tags, parameters = facts_of(catalog, f"{cell}{METRICS_SUFFIX}")
                    opened.store.log(run, parameters=parameters, tags=tags)
        self._close("FINISHED")

    @hook_impl
    def on_pipeline_error(self, error: Exception) -> None:
        """Close the runs as failed, or as killed if somebody stopped them, with the error's text as a tag."""
        with _only_a_warning("note the error"):
            if (opened := self._opened()) is not None:
                opened.store.log(opened.parent, tags={"error": f"{type(error).__name__}: {error}"[:LONGEST_TAG]})
        self._close("KILLED" if isinstance(error, TrainingInterrupted) else "FAILED")

    def _log(self, name: str, catalog: DataCatalog, outputs: Mapping[str, Any]) -> None:
        """Log a dataset once, if it is one of those that are logged and if it is there."""
        if name in self._seen or not _is_logged(name) or (opened := self._opened()) is None:
            return
        store, parent = opened.store, opened.parent
        with _only_a_warning(f"log {name}"):
            value = _content(name, catalog, outputs)
            if value is None:
                return
            self._seen.add(name)
            if name.endswith(METRICS_SUFFIX):
                self._log_cell(opened, name.removesuffix(METRICS_SUFFIX), value, catalog, outputs)
            elif name.endswith(HISTORY_SUFFIX):
                store.log(self._child(opened, name.removesuffix(HISTORY_SUFFIX)), epoch_metrics(value))
            elif name == PRE_TRAINING_HISTORY:
                store.log(parent, epoch_metrics(value))
            elif name.removeprefix(OF_FIELD) == ALL_METRICS:
                classifier = CLASSIFIER_BASELINE.method
                for of in value:
                    length = None if of["method"] == classifier else of["code_length"]
                    self._note_score(Cell(method=of["method"], code_length=length).namespace, of)
            elif name.endswith(TABLE_SUFFIX):
                store.write(parent, f"{name}.csv", value.to_csv(index=value.index.name is not None))
            else:
                store.write(parent, f"{name}.html", value)

    def _log_cell(
        self, opened: OpenRun, cell: str, metrics: Mapping[str, Any], catalog: DataCatalog, outputs: Mapping[str, Any]
    ) -> None:
        """Write the child run of a cell: its metrics and, if not yet, its history."""
        identity = {key: str(metrics[key]) for key in ("method", "code_length")}
        logged: list[Metric] = [
            (key, value, 0) for key, value in metrics.items() if key not in identity and is_number(value)
        ]
        if cell in self._seconds:
            logged.append(("seconds", self._seconds[cell], 0))
        history = f"{cell}{HISTORY_SUFFIX}"
        if history not in self._seen and (epochs := _content(history, catalog, outputs)) is not None:
            logged += epoch_metrics(epochs)
        # All is read by now, so a file that cannot be read leaves no child run that is never closed.
        self._seen.add(history)
        run = self._logged[cell] = self._child(opened, cell)
        opened.store.log(run, logged, identity)
        opened.store.close(opened.children.pop(cell), "FINISHED")
        self._note_score(cell, metrics)

    def _note_score(self, cell: str, metrics: Mapping[str, Any]) -> None:
        if is_number(metrics.get(SCORE)):
            self._scores[cell] = metrics[SCORE]

    def _child(self, opened: OpenRun, cell: str) -> str:
        return opened.child(cell, self._began.get(cell))

    def _close(self, status: str) -> None:
        opened, self._opening = self._opened(), None
        with _only_a_warning("close the run"):
            if opened is not None:
                opened.log_scores(self._scores)
                opened.close(status)


def _content(name: str, catalog: DataCatalog, outputs: Mapping[str, Any]) -> Any:
    """Give a dataset's content, as a node of this process has just made it, else as it is stored; None without any."""
    if name in outputs:
        return outputs[name]
    return catalog.load(name) if catalog.exists(name) else None


@contextmanager
def _only_a_warning(action: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # The first line of SQLAlchemy's, which are followed by its statement.
        said = (str(error).splitlines() or [""])[0]
        logger.warning(
            "MLflow could not %s, and the run goes on without it: %s: %s", action, type(error).__name__, said
        )


def _cell(dataset: str) -> str | None:
    """Cell of a dataset's name, None if it is no cell's."""
    return next((dataset.removesuffix(s) for s in (METRICS_SUFFIX, HISTORY_SUFFIX) if dataset.endswith(s)), None)


def _is_logged(name: str) -> bool:
    name = name.removeprefix(OF_FIELD)
    if "." in name:
        return _cell(name) is not None
    return name.endswith(TABLE_SUFFIX) or name in (*PAGES, PRE_TRAINING_HISTORY, ALL_METRICS)
