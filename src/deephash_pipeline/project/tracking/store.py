"""The runs of one experiment in a project's `mlflow.db`, and their files in `mlartifacts/`."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname

from deephash_pipeline.common.imports import imported_for_good

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

DATABASE = "mlflow.db"
ARTIFACTS = "mlartifacts"
INTERRUPTED = ("RUNNING", "KILLED")

# By this scheme `mlflow server --artifacts-destination` finds the files wherever the project has been moved to.
_SERVED = "mlflow-artifacts:/"

_EXPERIMENT_TAGS = {
    # Without it MLflow opens the experiment on its page for language models.
    "mlflow.experimentKind": "custom_model_development",
}
CONFIGURATION_TAG = "configuration"
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
        if found is None:
            self._experiment = self._client.create_experiment(experiment, _SERVED, _EXPERIMENT_TAGS)
        else:
            self._experiment = found.experiment_id
            for key in _EXPERIMENT_TAGS.keys() - found.tags.keys():
                self._client.set_experiment_tag(self._experiment, key, _EXPERIMENT_TAGS[key])
        self._runs: dict[str, Run] = {}
        """As they were made here, or found here when they were resumed."""

    def open(self, name: str, tags: Mapping[str, str], start: float | None = None) -> str:
        """Make a run.

        Args:
            name: as it is shown.
            tags: of the run; `PARENT_TAG` makes it a child.
            start: seconds since the epoch, now by default.

        Returns:
            Its identifier.
        """
        started = _milliseconds(start or time.time())
        made = self._client.create_run(self._experiment, started, dict(tags), name)
        self._runs[made.info.run_id] = made
        return str(made.info.run_id)

    def resume(self, configuration: str) -> str | None:
        """Reopen the last run if the same command was interrupted before its end: its curves go on in the same run."""
        found = self._client.search_runs(
            [self._experiment],
            f"tags.{CONFIGURATION_TAG} = '{configuration}'",
            max_results=1,
            order_by=["attributes.start_time DESC"],
        )
        if not found or found[0].info.status not in INTERRUPTED:
            return None
        run = self._runs[found[0].info.run_id] = found[0]
        self._client.update_run(run.info.run_id, status="RUNNING")
        return str(run.info.run_id)

    def children(self, parent: str) -> dict[str, str]:
        """Identifiers of the child runs that an interrupted run has left, by name."""
        found = self._client.search_runs([self._experiment], f"tags.`{PARENT_TAG}` = '{parent}'")
        self._runs |= {run.info.run_id: run for run in found}
        return {str(run.info.run_name): str(run.info.run_id) for run in found}

    def log(
        self,
        run: str,
        metrics: Iterable[Metric] = (),
        parameters: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Log metrics, parameters and tags, of a resumed run only the metrics that it does not have.

        One call for all of them: in every call MLflow looks the run up and waits for the disk. MLflow itself splits
        what is too many for one batch.
        """
        from mlflow.entities import Metric as MlflowMetric  # noqa: PLC0415 - as late as MLflow
        from mlflow.entities import Param, RunTag  # noqa: PLC0415

        given = list(metrics)
        there = self._runs[run].data.metrics
        last = {name: value for name, value, _ in given}
        given = [metric for metric in given if there.get(metric[0]) != last[metric[0]]]
        now = _milliseconds(time.time())
        logged = [MlflowMetric(name, float(value), now, step) for name, value, step in given]
        given_parameters = [Param(key, value) for key, value in (parameters or {}).items()]
        self._client.log_batch(run, logged, given_parameters, [RunTag(*tag) for tag in (tags or {}).items()])

    def tag(self, run: str, key: str, value: str) -> None:
        """Set a tag of a run."""
        self._client.set_tag(run, key, value)

    def log_dataset(self, run: str, name: str, digest: str, source: str) -> None:
        """Log the images that a run works on; a resumed run has them already.

        Args:
            run: its identifier.
            name: of the benchmark.
            digest: of the names and contents of its files, as manifests have it.
            source: where they come from, as JSON.
        """
        from mlflow.entities import Dataset, DatasetInput, InputTag  # noqa: PLC0415 - as late as MLflow

        dataset = Dataset(name, digest, "local", source)
        self._client.log_inputs(run, [DatasetInput(dataset, [InputTag("mlflow.data.context", "evaluation")])])

    def write(self, run: str, name: str, text: str) -> None:
        """Store a text as an artifact of a run."""
        folder = self._folder(self._runs[run].info.artifact_uri)
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
        # Experiments of earlier versions name their folder by its absolute path.
        if uri.startswith(_SERVED):
            return self._artifacts / uri.removeprefix(_SERVED)
        return Path(url2pathname(urlsplit(uri).path))

    def close(self, run: str, status: str, end: float | None = None) -> None:
        """End a run; a child that had finished before its parent was interrupted keeps its times.

        Args:
            run: its identifier.
            status: ``FINISHED``, ``FAILED`` or ``KILLED``.
            end: seconds since the epoch, now by default.
        """
        if self._runs[run].info.status == "FINISHED":
            return
        self._client.set_terminated(run, status, _milliseconds(end or time.time()))


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
