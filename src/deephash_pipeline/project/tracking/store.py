"""The runs of one experiment in a project's `mlflow.db`, and their files in `mlartifacts/`."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from deephash_pipeline.common.imports import imported_for_good
from deephash_pipeline.pipelines.grid import CLASSIFIER_BASELINE

if TYPE_CHECKING:
    from mlflow import MlflowClient

DATABASE = "mlflow.db"
ARTIFACTS = "mlartifacts"

# By this scheme `mlflow server --artifacts-destination` finds the files wherever the project has been moved to.
_SERVED = "mlflow-artifacts:/"

PARENT_TAG = "mlflow.parentRunId"

Metric: TypeAlias = tuple[str, float, int]
"""Name, value and step."""


class MlflowStore:
    """Opens, fills and closes the runs of one experiment.

    Args:
        project: folder of the database and of the artifacts.
        experiment: its name; made if it does not exist.
    """

    def __init__(self, project: Path, experiment: str) -> None:
        self._artifacts = project / ARTIFACTS
        self._client = _connect(project / DATABASE)
        found = self._client.get_experiment_by_name(experiment)
        # Without the tag MLflow opens the experiment on its page for language models.
        tags = {"mlflow.experimentKind": "custom_model_development"}
        self._experiment = found.experiment_id if found else self._client.create_experiment(experiment, _SERVED, tags)

    def open(self, name: str, tags: Mapping[str, str], start: float | None = None) -> str:
        """Make a run.

        Args:
            name: as it is shown.
            tags: tags of the run; `PARENT_TAG` makes it a child.
            start: seconds since the epoch, now by default.

        Returns:
            Its identifier.
        """
        started = _milliseconds(start or time.time())
        return str(self._client.create_run(self._experiment, started, dict(tags), name).info.run_id)

    def end_killed_runs(self) -> None:
        """Close what an earlier process has left open when it was killed: it would be shown as running for ever."""
        for run in self._client.search_runs([self._experiment], "attributes.status = 'RUNNING'"):
            self.close(run.info.run_id, "KILLED")

    def log(
        self,
        run: str,
        metrics: Iterable[Metric] = (),
        parameters: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Log metrics, parameters and tags.

        One call for all of them: in every call MLflow looks the run up and waits for the disk. MLflow itself splits
        what is too many for one batch.
        """
        from mlflow.entities import Metric as MlflowMetric  # noqa: PLC0415 - as late as MLflow
        from mlflow.entities import Param, RunTag  # noqa: PLC0415

        now = _milliseconds(time.time())
        logged = [MlflowMetric(name, float(value), now, step) for name, value, step in metrics]
        given_parameters = [Param(key, value) for key, value in (parameters or {}).items()]
        self._client.log_batch(run, logged, given_parameters, [RunTag(*tag) for tag in (tags or {}).items()])

    def write(self, run: str, name: str, text: str) -> None:
        """Store a text as an artifact of a run."""
        folder = self._artifacts / run / "artifacts"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    @contextmanager
    def new_model(self, name: str, facts: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
        """Give the identifier of a new model, and the folder to write it into; it is ready if that fails in nothing.

        Args:
            name: as it is shown.
            facts: what is shown beside it.
        """
        run = self.open(f"log {name}", {})
        model = self._client.create_logged_model(self._experiment, name, run, params=dict(facts), model_type="pyfunc")
        ready = False
        try:
            yield model.model_id, self._folder(model.artifact_location)
            ready = True
        finally:
            self._client.finalize_logged_model(model.model_id, "READY" if ready else "FAILED")
            self.close(run, "FINISHED" if ready else "FAILED")

    def register(self, name: str, model_id: str) -> str:
        """Make a model the next version of those registered by a name; return its address."""
        if not self._client.search_registered_models(f"name = '{name}'"):
            self._client.create_registered_model(name)
        model = self._client.get_logged_model(model_id)
        # Without the run MLflow would look the model up in another database.
        made = self._client.create_model_version(
            name, model.artifact_location, run_id=model.source_run_id, model_id=model_id
        )
        return f"models:/{name}/{made.version}"

    def _folder(self, uri: str) -> Path:
        return self._artifacts / uri.removeprefix(_SERVED)

    def close(self, run: str, status: str) -> None:
        """End a run now.

        Args:
            run: its identifier.
            status: ``FINISHED``, ``FAILED`` or ``KILLED``.
        """
        self._client.set_terminated(run, status)


@dataclass
class OpenRun:
    """The parent run of a `kedro run`, in its store.

    Attributes:
        store: store of all runs.
        parent: identifier of the run.
        children: cell -> identifier of its child run, of those that are open.
    """

    store: MlflowStore
    parent: str
    children: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, project: Path, parameters: Mapping[str, str], tags: Mapping[str, str]) -> "OpenRun":
        """Open a new run. No other of the benchmark is at work: each has its lock."""
        store = MlflowStore(project, tags["benchmark"])
        store.end_killed_runs()
        run = store.open(f"{tags['pipeline']} {tags['environment']}", tags)
        store.log(run, parameters=parameters)
        return cls(store, run)

    def child(self, cell: str, start: float | None) -> str:
        """Find or open the child run of a cell, which began at a time in seconds since the epoch, now by default."""
        if cell not in self.children:
            self.children[cell] = self.store.open(cell, {PARENT_TAG: self.parent}, start)
        return self.children[cell]

    def log_scores(self, scores: Mapping[str, float]) -> None:
        """Log each cell's mAP in the parent run, and the best of all methods with its cell."""
        logged: list[Metric] = [(f"map/{cell}", score, 0) for cell, score in scores.items()]
        # Not the classifier's own code, with any seed.
        classifier = f"{CLASSIFIER_BASELINE.namespace}."
        best = max(
            (cell for cell in scores if not f"{cell}.".startswith(classifier)),
            key=lambda cell: scores[cell],
            default=None,
        )
        if best is not None:
            logged.append(("map/best", scores[best], 0))
        if logged:
            self.store.log(self.parent, logged, tags={"best_cell": best} if best else {})

    def close(self, status: str) -> None:
        """End the run and the child runs that are still open."""
        for run in (*self.children.values(), self.parent):
            self.store.close(run, status)


def _connect(database: Path) -> "MlflowClient":
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("DO_NOT_TRACK", "true")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")

    # Two runs that make the database at the same time would get in each other's way.
    folder = os.open(database.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        there = _is_made(database)
        with imported_for_good():
            from mlflow import MlflowClient  # noqa: PLC0415 - takes seconds, which `kedro registry list` need not wait
        if not there:
            _make(database)
        return MlflowClient(f"sqlite:///{database.as_posix()}")
    finally:
        os.close(folder)


def _is_made(database: Path) -> bool:
    """Whether a database is there and whole: the last that MLflow puts into a new one is an experiment."""
    if not database.exists():
        return False
    with closing(sqlite3.connect(database)) as connection:
        # Asked for what it cannot open or write, MLflow tries for minutes before it gives up.
        connection.execute("BEGIN IMMEDIATE")
        tables = connection.execute("SELECT name FROM sqlite_master WHERE name = 'experiments'").fetchall()
        return bool(tables and connection.execute("SELECT 1 FROM experiments").fetchone())


def _make(database: Path) -> None:
    """Make a database beside and rename it: killed in these seconds, MLflow leaves one that it can never open again."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore  # noqa: PLC0415 - as late as MLflow

    beside = database.with_name(f"{database.name}.partial")
    for left in (beside, beside.with_name(f"{beside.name}-journal")):
        left.unlink(missing_ok=True)
    beside.touch()
    SqlAlchemyStore(f"sqlite:///{beside.as_posix()}", _SERVED)._dispose_engine()  # type: ignore[no-untyped-call]
    beside.replace(database)


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)
