"""The runs of one experiment in a project's `mlflow.db`, and their files in `mlartifacts/`."""

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from deephash_pipeline.common.imports import imported_for_good

if TYPE_CHECKING:
    from mlflow import MlflowClient

DATABASE_FILE = "mlflow.db"
ARTIFACTS = "mlartifacts"

# By this scheme `mlflow server --artifacts-destination` finds the files wherever the project has been moved to.
_SERVED = "mlflow-artifacts:/"

PARENT_TAG = "mlflow.parentRunId"

VIEW_TAG = "mlflow.sharedViewState.cells"
VIEW = {
    "orderByKey": "metrics.`mean_average_precision`",
    "orderByAsc": False,
    "selectedColumns": [
        "metrics.`mean_average_precision`",
        "metrics.`seconds`",
        "params.`method_name`",
        "params.`code_length`",
    ],
}
"""Columns and order of the table that ``?viewStateShareKey=cells`` shows: MLflow's own has no metric."""

Metric: TypeAlias = tuple[str, float, int]
"""Name, value and step."""


class MlflowStore:
    """Opens, fills and closes the runs of one experiment.

    Args:
        project: folder of the database and of the artifacts.
        experiment: its name; made if it does not exist, restored if it was deleted.
    """

    def __init__(self, project: Path, experiment: str) -> None:
        self.project = project
        self._artifacts = project / ARTIFACTS
        self._client = _connect(project / DATABASE_FILE)
        found = self._client.get_experiment_by_name(experiment)
        # Without the tag MLflow opens the experiment on its page for language models.
        tags = {"mlflow.experimentKind": "custom_model_development"}
        self._experiment = found.experiment_id if found else self._client.create_experiment(experiment, _SERVED, tags)
        if found and found.lifecycle_stage == "deleted":
            self._client.restore_experiment(self._experiment)
        if not found or VIEW_TAG not in found.tags:
            self._client.set_experiment_tag(self._experiment, VIEW_TAG, json.dumps(VIEW))

    def open(self, name: str, tags: Mapping[str, str], start: float | None = None) -> str:
        """Make a run.

        Args:
            name: as it is shown.
            tags: tags of the run; `PARENT_TAG` makes it a child.
            start: seconds since the epoch, now by default.

        Returns:
            Its identifier.
        """
        started = int(1000 * (start or time.time()))
        return str(self._client.create_run(self._experiment, started, dict(tags), name).info.run_id)

    def has_finished(self, name: str, tag: str, value: str) -> bool:
        """Whether a run of a name has ended well with a tag of a value."""
        wanted = f"attributes.run_name = '{name}' and tags.`{tag}` = '{value}' and attributes.status = 'FINISHED'"
        return bool(self._client.search_runs([self._experiment], wanted, max_results=1))

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

        now = int(1000 * time.time())
        logged = [MlflowMetric(name, float(value), now, step) for name, value, step in metrics]
        given_parameters = [Param(key, value) for key, value in (parameters or {}).items()]
        self._client.log_batch(run, logged, given_parameters, [RunTag(*tag) for tag in (tags or {}).items()])

    def write(self, run: str, name: str, text: str) -> None:
        """Store a text as an artifact of a run."""
        self.folder(run).mkdir(parents=True, exist_ok=True)
        (self.folder(run) / name).write_text(text, encoding="utf-8")

    def link(self, run: str, file: Path) -> None:
        """Give a run a file as an artifact, which takes no space; on another disk the run has its path alone."""
        self.folder(run).mkdir(parents=True, exist_ok=True)
        # Files of results are replaced and never changed, so the link keeps what the run has made.
        with suppress(OSError):
            os.link(file, self.folder(run) / file.name)

    def folder(self, run: str) -> Path:
        """Give the folder of the artifacts of a run."""
        return self._artifacts / run / "artifacts"

    def register(self, name: str, run: str, folder: str) -> str:
        """Make a model in a folder of a run the next version of those registered by a name; return its address."""
        if not self._client.search_registered_models(f"name = '{name}'"):
            self._client.create_registered_model(name)
        made = self._client.create_model_version(name, f"{_SERVED}{run}/artifacts/{folder}", run_id=run)
        return f"models:/{name}/{made.version}"

    def close(self, run: str, status: str) -> None:
        """End a run now.

        Args:
            run: its identifier.
            status: ``FINISHED``, ``FAILED`` or ``KILLED``.
        """
        self._client.set_terminated(run, status)


def _connect(database: Path) -> "MlflowClient":
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("DO_NOT_TRACK", "true")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")

    # Two runs that make the database at the same time would get in each other's way.
    folder = os.open(database.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        with imported_for_good():
            from mlflow import MlflowClient  # noqa: PLC0415 - takes seconds, which `kedro registry list` need not wait
        if not database.exists():
            _make(database)
        with closing(sqlite3.connect(database)) as connection:
            # Asked for what it cannot open or write, MLflow tries for minutes before it gives up.
            connection.execute("BEGIN IMMEDIATE")
        address = f"sqlite:///{database.as_posix()}"
        # Also where variables of MLflow name another store, or another registry of models.
        return MlflowClient(address, registry_uri=address)
    finally:
        os.close(folder)


def _make(database: Path) -> None:
    """Make a database beside and rename it: killed in these seconds, MLflow leaves one that it can never open again."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore  # noqa: PLC0415 - as late as MLflow

    beside = database.with_name(f"{database.name}.partial")
    for left in (beside, beside.with_name(f"{beside.name}-journal")):
        left.unlink(missing_ok=True)
    beside.touch()
    SqlAlchemyStore(f"sqlite:///{beside.as_posix()}", _SERVED).engine.dispose()  # type: ignore[no-untyped-call]
    beside.replace(database)
