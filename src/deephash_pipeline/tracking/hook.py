"""The MLflow hook: a parent run for every `kedro run`, a child run for every cell.

A cell's history and metrics are logged as soon as a node has made them, by the process that the run was started in;
where a run only reads what an earlier one has made, at its end. MLflow is never worth a training: what fails here is a
warning.
"""

import atexit
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

from kedro.framework.hooks import hook_impl
from kedro.io import DataCatalog
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from deephash_pipeline.grid import CLASSIFIER_BASELINE
from deephash_pipeline.tracking.description import (
    LONGEST_TAG,
    benchmark_of,
    consumed_parameters,
    epoch_metrics,
    is_number,
    run_tags,
)
from deephash_pipeline.tracking.store import CONFIGURATION_TAG, PARENT_TAG, Metric, MlflowStore
from deephash_pipeline.training import TrainingInterrupted

logger = logging.getLogger(__name__)

METRICS_SUFFIX = ".metrics"
CURVES_SUFFIX = ".curves"
HISTORY_SUFFIX = ".history"
PRE_TRAINING_HISTORY = "pre_training_history"
ALL_METRICS = "all_metrics"
PAGES = ("report", "gallery")
TABLE_SUFFIX = "_table"
FIGURE_PREFIX = "figure_"
SCORE = "mean_average_precision"


Handler: TypeAlias = signal.Handlers | Callable[[int, FrameType | None], None]


@dataclass
class CellTimes:
    """When a cell's first node began and its last ended, in seconds since the epoch, and how long its nodes took."""

    start: float
    end: float
    seconds: float = 0.0


class MlflowTracking:
    """Writes every run to `mlflow.db` and `mlartifacts/` in the project's root, from whatever folder it is started."""

    def __init__(self) -> None:
        self._store: MlflowStore | None = None
        self._run: str | None = None
        self._begin({}, set())

    def _begin(self, children: dict[str, str], cells: set[str]) -> None:
        self._children, self._cells = children, cells
        self._scores: dict[str, float] = {}
        self._times: dict[str, CellTimes] = {}
        self._started: dict[str, float] = {}
        self._seen: set[str] = set()

    @hook_impl
    def before_pipeline_run(self, run_params: dict[str, Any], pipeline: Pipeline, catalog: DataCatalog) -> None:
        """Open the parent run: the parameters that the pipeline consumes; where, how and from what code it runs."""
        self._close("KILLED")
        with _only_a_warning("open a run"):
            project = Path(run_params["project_path"]).resolve()
            benchmark = benchmark_of(catalog)
            parameters = consumed_parameters(pipeline, catalog)
            tags = run_tags(run_params, project, parameters) | {"benchmark": benchmark}
            store = self._store = MlflowStore(project, benchmark)
            run = store.resume(tags[CONFIGURATION_TAG])
            children = store.children(run) if run else {}
            if run is None:
                run = store.open(f"{tags['pipeline']} {tags['environment']}", tags)
                store.log(run, parameters=parameters)
            self._run = run
            self._begin(children, set(filter(None, map(_cell, pipeline.datasets()))))
            # An interrupted run reaches no hook: left open, it would be shown as running for ever.
            atexit.register(self._close, "KILLED")
            _exchange_sigterm(signal.SIG_DFL, _exit)

    @hook_impl
    def before_node_run(self, node: Node) -> None:
        """Note when a node begins."""
        self._started[node.name] = time.time()

    @hook_impl
    def after_node_run(self, node: Node, catalog: DataCatalog, outputs: dict[str, Any]) -> None:
        """Log what a node has made, and how long its cell has taken so far."""
        now = time.time()
        start = self._started.pop(node.name, now)
        cell = ".".join((node.namespace or "").split(".")[-2:])
        if cell in self._cells:
            times = self._times.setdefault(cell, CellTimes(start, now))
            times.end, times.seconds = now, times.seconds + now - start

        def content(name: str) -> Any:
            return outputs[name] if name in outputs else _stored(catalog, name)

        for name in sorted(node.outputs):
            self._log(name, content)

    @hook_impl
    def after_pipeline_run(self, pipeline: Pipeline, catalog: DataCatalog) -> None:
        """Log what the run has read or another process has made, where it is stored; close the run."""
        for name in sorted(pipeline.datasets()):
            self._log(name, lambda name: _stored(catalog, name))
        self._close("FINISHED")

    @hook_impl
    def on_pipeline_error(self, error: Exception) -> None:
        """Close the runs as failed, or as killed if somebody stopped them, with the error's text as a tag."""
        with _only_a_warning("note the error"):
            if self._store is not None and self._run is not None:
                self._store.tag(self._run, "error", f"{type(error).__name__}: {error}"[:LONGEST_TAG])
        self._close("KILLED" if isinstance(error, TrainingInterrupted) else "FAILED")

    def _log(self, name: str, content: Callable[[str], Any]) -> None:
        """Log a dataset once, if it is one of those that are logged and if it is there."""
        store, parent = self._store, self._run
        if store is None or parent is None or name in self._seen or not _is_logged(name):
            return
        with _only_a_warning(f"log {name}"):
            value = content(name)
            if value is None:
                return
            self._seen.add(name)
            if name.endswith(METRICS_SUFFIX):
                self._log_cell(store, parent, name.removesuffix(METRICS_SUFFIX), value, content)
            elif name.endswith(HISTORY_SUFFIX):
                store.log(self._child(store, parent, name.removesuffix(HISTORY_SUFFIX)), epoch_metrics(value))
            elif name == PRE_TRAINING_HISTORY:
                store.log(parent, epoch_metrics(value))
            elif name == ALL_METRICS:
                self._log_scores(store, parent, {_cell_of(metrics): metrics for metrics in value})
            elif name.endswith(TABLE_SUFFIX):
                store.write(parent, f"{name}.csv", _csv(value))
            else:
                html = value if isinstance(value, str) else value.to_html(include_plotlyjs=True)
                store.write(parent, f"{name}.html", html)

    def _log_cell(
        self,
        store: MlflowStore,
        parent: str,
        cell: str,
        metrics: Mapping[str, Any],
        content: Callable[[str], Any],
    ) -> None:
        """Write the child run of a cell: its metrics, its precision-recall curves and, if not yet, its history."""
        identity = {key: metrics[key] for key in ("method", "code_length")}
        logged: list[Metric] = [
            (key, value, 0) for key, value in metrics.items() if key not in identity and is_number(value)
        ]
        if cell in self._times:
            logged.append(("seconds", self._times[cell].seconds, 0))
        curves = content(f"{cell}{CURVES_SUFFIX}")
        if f"{cell}{HISTORY_SUFFIX}" not in self._seen:
            self._seen.add(f"{cell}{HISTORY_SUFFIX}")
            history = content(f"{cell}{HISTORY_SUFFIX}")
            logged += [] if history is None else epoch_metrics(history)
        # All is read by now, so a file that cannot be read leaves no child run that is never closed.
        run = self._child(store, parent, cell)
        store.log(run, logged, {key: str(value) for key, value in identity.items()})
        if curves is not None:
            store.write(run, "curves.csv", _csv(curves))
        self._close_child(store, cell, "FINISHED")
        self._log_scores(store, parent, {cell: metrics})

    def _log_scores(self, store: MlflowStore, parent: str, metrics: Mapping[str, Mapping[str, Any]]) -> None:
        """Log each cell's mAP in the parent run, and the best of all methods with its cell."""
        new = {cell: of_cell[SCORE] for cell, of_cell in metrics.items() if is_number(of_cell.get(SCORE))}
        new = {cell: score for cell, score in new.items() if self._scores.get(cell) != score}
        self._scores |= new
        logged: list[Metric] = [(f"map/{cell}", score, 0) for cell, score in new.items()]
        methods = {cell: score for cell, score in self._scores.items() if cell != CLASSIFIER_BASELINE.namespace}
        if new and methods:
            best = max(methods, key=methods.__getitem__)
            logged.append(("map/best", methods[best], 0))
            store.tag(parent, "best_cell", best)
        store.log(parent, logged)

    def _child(self, store: MlflowStore, parent: str, cell: str) -> str:
        """Find or open the child run of a cell."""
        if cell not in self._children:
            start = self._times[cell].start if cell in self._times else None
            self._children[cell] = store.open(cell, {PARENT_TAG: parent}, start)
        return self._children[cell]

    def _close_child(self, store: MlflowStore, cell: str, status: str) -> None:
        store.close(self._children.pop(cell), status, self._times[cell].end if cell in self._times else None)

    def _close(self, status: str) -> None:
        run, self._run = self._run, None
        with _only_a_warning("close the run"):
            if self._store is not None and run is not None:
                for cell in list(self._children):
                    self._close_child(self._store, cell, status)
                self._store.close(run, status)
        _exchange_sigterm(_exit, signal.SIG_DFL)


@contextmanager
def _only_a_warning(action: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        logger.warning(
            "MLflow could not %s, and the run goes on without it: %s: %s", action, type(error).__name__, error
        )


def _exit(number: int, _frame: FrameType | None) -> None:
    """End the process by way of Python's exit, so that runs are closed, with a shell's code for the signal."""
    sys.exit(128 + number)


def _exchange_sigterm(there: Handler, new: Handler) -> None:
    """Set the handler of SIGTERM where another is there, in the main thread: Python can do so in no other."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == there:
        signal.signal(signal.SIGTERM, new)


def _stored(catalog: DataCatalog, name: str) -> Any:
    return catalog.load(name) if catalog.exists(name) else None


def _cell(dataset: str) -> str | None:
    """Cell of a dataset's name, None if it is no cell's."""
    return next((dataset.removesuffix(s) for s in (METRICS_SUFFIX, HISTORY_SUFFIX) if dataset.endswith(s)), None)


def _cell_of(metrics: Mapping[str, Any]) -> str:
    if metrics["method"] == CLASSIFIER_BASELINE.method:
        return CLASSIFIER_BASELINE.namespace
    return f"{metrics['method']}.b{metrics['code_length']}"


def _is_logged(name: str) -> bool:
    if "." in name:
        return _cell(name) is not None
    named = (*PAGES, PRE_TRAINING_HISTORY, ALL_METRICS)
    return name.endswith(TABLE_SUFFIX) or name.startswith(FIGURE_PREFIX) or name in named


def _csv(frame: Any) -> str:
    text: str = frame.to_csv(index=frame.index.name is not None)
    return text
