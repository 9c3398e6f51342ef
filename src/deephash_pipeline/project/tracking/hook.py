"""The MLflow hook: a parent run for every `kedro run`, a child run for every cell.

A cell's history and metrics are logged as soon as a node has made them, by the process that the run was started in;
where a run only reads what an earlier one has made, at its end. MLflow takes seconds to start: it does so in a thread,
while nodes begin. A run of no nodes is none to MLflow, unless it ends one that was interrupted. Tracking is never worth
a training: what fails here is a warning.
"""

import atexit
import json
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TypeAlias

from kedro.framework.hooks import hook_impl
from kedro.io import DataCatalog
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from deephash_pipeline.common.cell import FIELD, Cell
from deephash_pipeline.pipelines.grid import CLASSIFIER_BASELINE
from deephash_pipeline.project.tracking.ancestors import (
    DIGEST,
    RAW_IMAGES,
    Facts,
    facts_of,
    manifest_of,
    raw_images_digest,
)
from deephash_pipeline.project.tracking.description import (
    LONGEST_TAG,
    benchmark_of,
    consumed_parameters,
    epoch_metrics,
    is_number,
    run_tags,
)
from deephash_pipeline.project.tracking.open_run import OpenRun
from deephash_pipeline.project.tracking.store import Metric
from deephash_pipeline.training import TrainingInterrupted

logger = logging.getLogger(__name__)

METRICS_SUFFIX = ".metrics"
CURVES_SUFFIX = ".curves"
HISTORY_SUFFIX = ".history"
PRE_TRAINING_HISTORY = "pre_training_history"
ALL_METRICS = "all_metrics"
OF_FIELD = f"{FIELD}."
PAGES = ("report", "gallery")
TABLE_SUFFIX = "_table"
FIGURE_PREFIX = "figure_"


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
        self._begin(set())

    def _begin(self, cells: set[str]) -> None:
        self._open: Callable[..., OpenRun | None] | None = None
        self._opening: Future[OpenRun | None] | None = None
        self._cells = cells
        self._times: dict[str, CellTimes] = {}
        self._started: dict[str, float] = {}
        self._seen: set[str] = set()
        self._without_facts: dict[str, str] = {}

    @hook_impl
    def before_pipeline_run(self, run_params: dict[str, Any], pipeline: Pipeline, catalog: DataCatalog) -> None:
        """Open the parent run: the parameters that the pipeline consumes; where, how and from what code it runs."""
        self._close("KILLED")
        with _only_a_warning("open a run"):
            project = Path(run_params["project_path"]).resolve()
            benchmark = benchmark_of(catalog)
            parameters = consumed_parameters(pipeline, catalog)
            tags = run_tags(run_params, project, parameters) | {"benchmark": benchmark}
            self._begin(set(filter(None, map(_cell, pipeline.datasets()))))
            self._open = partial(OpenRun.open, project, parameters, tags)
            # An interrupted run reaches no hook: left open, it would be shown as running for ever.
            atexit.register(self._close, "KILLED")
            _exchange_sigterm(signal.SIG_DFL, _exit)

    def _begin_to_open(self, new: bool) -> None:
        if self._open is not None:
            thread = ThreadPoolExecutor(1, "mlflow")
            self._opening, self._open = thread.submit(self._open, new=new), None
            thread.shutdown(wait=False)

    def _opened(self) -> OpenRun | None:
        """Give the parent run, as soon as it is open; None if there is none, or no more."""
        with _only_a_warning("open a run"):
            return None if self._opening is None else self._opening.result()
        self._opening = None
        return None

    @hook_impl
    def before_node_run(self, node: Node) -> None:
        """Note when a node begins; open the run with the first."""
        self._begin_to_open(new=True)
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
            times = self._times.setdefault(cell, CellTimes(start, now))
            times.end, times.seconds = now, times.seconds + now - start

        for name in sorted(node.outputs):
            self._log(name, Contents(catalog, outputs))

    @hook_impl
    def after_pipeline_run(self, pipeline: Pipeline, catalog: DataCatalog) -> None:
        """Log what the run has read or another process has made, where it is stored; close the run."""
        self._begin_to_open(new=False)
        for name in sorted(pipeline.datasets()):
            self._log(name, Contents(catalog, {}))
        with _only_a_warning("log the digests"):
            self._log_ancestors(pipeline, catalog)
        self._close("FINISHED")

    @hook_impl
    def on_pipeline_error(self, error: Exception) -> None:
        """Close the runs as failed, or as killed if somebody stopped them, with the error's text as a tag."""
        with _only_a_warning("note the error"):
            if (opened := self._opened()) is not None:
                opened.store.tag(opened.parent, "error", f"{type(error).__name__}: {error}"[:LONGEST_TAG])
        self._close("KILLED" if isinstance(error, TrainingInterrupted) else "FAILED")

    def _log(self, name: str, contents: "Contents") -> None:
        """Log a dataset once, if it is one of those that are logged and if it is there."""
        if name in self._seen or not _is_logged(name) or (opened := self._opened()) is None:
            return
        store, parent = opened.store, opened.parent
        with _only_a_warning(f"log {name}"):
            value = contents.get(name)
            if value is None:
                return
            self._seen.add(name)
            if name.endswith(METRICS_SUFFIX):
                self._log_cell(opened, name.removesuffix(METRICS_SUFFIX), value, contents)
            elif name.endswith(HISTORY_SUFFIX):
                store.log(self._child(opened, name.removesuffix(HISTORY_SUFFIX)), epoch_metrics(value))
            elif name == PRE_TRAINING_HISTORY:
                store.log(parent, epoch_metrics(value))
            elif name.removeprefix(OF_FIELD) == ALL_METRICS:
                classifier = CLASSIFIER_BASELINE.method
                cells = [(of["method"], None if of["method"] == classifier else of["code_length"]) for of in value]
                names = [Cell(method=method, code_length=length).namespace for method, length in cells]
                opened.note_scores(dict(zip(names, value, strict=True)))
            elif name.endswith(TABLE_SUFFIX):
                store.write(parent, f"{name}.csv", _csv(value))
            else:
                html = value if isinstance(value, str) else value.to_html(include_plotlyjs=True)
                store.write(parent, f"{name}.html", html)

    def _log_ancestors(self, pipeline: Pipeline, catalog: DataCatalog) -> None:
        """Tag the runs with the digests of manifests, and log the raw images that the results came from."""
        if (opened := self._opened()) is None:
            return
        store, parent = opened.store, opened.parent
        for cell, run in self._without_facts.items():
            facts = facts_of(catalog, f"{cell}{METRICS_SUFFIX}")
            store.log(run, parameters=facts.parameters, tags=facts.tags)
        for name in sorted({ALL_METRICS, *PAGES} & pipeline.all_outputs()):
            manifest = manifest_of(catalog, name)
            if manifest is not None:
                store.tag(parent, f"{DIGEST}{name}", manifest.digest)
        found = (raw_images_digest(catalog, name) for name in sorted(pipeline.datasets()))
        digest = next(filter(None, found), None)
        images = catalog.get(RAW_IMAGES)
        if digest is not None and images is not None:
            source = json.dumps(images._describe(), default=str)
            store.log_dataset(parent, benchmark_of(catalog), digest, source)

    def _log_cell(self, opened: OpenRun, cell: str, metrics: Mapping[str, Any], contents: "Contents") -> None:
        """Write the child run of a cell: its metrics, its precision-recall curves and, if not yet, its history."""
        identity = {key: metrics[key] for key in ("method", "code_length")}
        logged: list[Metric] = [
            (key, value, 0) for key, value in metrics.items() if key not in identity and is_number(value)
        ]
        if cell in self._times:
            logged.append(("seconds", self._times[cell].seconds, 0))
        curves = contents.get(f"{cell}{CURVES_SUFFIX}")
        if f"{cell}{HISTORY_SUFFIX}" not in self._seen:
            self._seen.add(f"{cell}{HISTORY_SUFFIX}")
            history = contents.get(f"{cell}{HISTORY_SUFFIX}")
            logged += [] if history is None else epoch_metrics(history)
        facts = contents.facts(f"{cell}{METRICS_SUFFIX}")
        # All is read by now, so a file that cannot be read leaves no child run that is never closed.
        run, store = self._child(opened, cell), opened.store
        if facts is None:
            self._without_facts[cell] = run
        tags, parameters = facts or Facts({}, {})
        store.log(run, logged, parameters | {key: str(value) for key, value in identity.items()}, tags)
        if curves is not None:
            store.write(run, "curves.csv", _csv(curves))
        opened.close_child(cell, "FINISHED", self._end(cell))
        opened.note_scores({cell: metrics})

    def _child(self, opened: OpenRun, cell: str) -> str:
        return opened.child(cell, self._times[cell].start if cell in self._times else None)

    def _close(self, status: str) -> None:
        self._open = None
        opened, self._opening = self._opened(), None
        with _only_a_warning("close the run"):
            if opened is not None:
                opened.close(status, {cell: self._end(cell) for cell in opened.children})
        _exchange_sigterm(_exit, signal.SIG_DFL)

    def _end(self, cell: str) -> float | None:
        return self._times[cell].end if cell in self._times else None


class Contents(NamedTuple):
    """What datasets contain: as nodes of this process have just made it, else as it is stored."""

    catalog: DataCatalog
    outputs: Mapping[str, Any]

    def get(self, name: str) -> Any:
        """Give a dataset's content; None if there is none."""
        if name in self.outputs:
            return self.outputs[name]
        return self.catalog.load(name) if self.catalog.exists(name) else None

    def facts(self, name: str) -> Facts | None:
        """Give what the manifest of a dataset says; None if it is yet to be stored."""
        return None if name in self.outputs else facts_of(self.catalog, name)


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


def _exit(number: int, _frame: FrameType | None) -> None:
    """End the process by way of Python's exit, so that runs are closed, with a shell's code for the signal."""
    sys.exit(128 + number)


def _exchange_sigterm(there: Handler, new: Handler) -> None:
    """Set the handler of SIGTERM where another is there, in the main thread: Python can do so in no other."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == there:
        signal.signal(signal.SIGTERM, new)


def _cell(dataset: str) -> str | None:
    """Cell of a dataset's name, None if it is no cell's."""
    return next((dataset.removesuffix(s) for s in (METRICS_SUFFIX, HISTORY_SUFFIX) if dataset.endswith(s)), None)


def _is_logged(name: str) -> bool:
    name = name.removeprefix(OF_FIELD)
    if "." in name:
        return _cell(name) is not None
    named = (*PAGES, PRE_TRAINING_HISTORY, ALL_METRICS)
    return name.endswith(TABLE_SUFFIX) or name.startswith(FIGURE_PREFIX) or name in named


def _csv(frame: Any) -> str:
    text: str = frame.to_csv(index=frame.index.name is not None)
    return text
