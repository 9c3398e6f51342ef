"""The MLflow hook: a parent run for every `kedro run`, a child run for every cell, read from what the catalog holds.

Nothing else in the project knows MLflow. The hook reads stored datasets once the run is over, in the main process, so
it depends on no runner and logs cached results like fresh ones. MLflow is never worth a training: what fails here is a
warning.
"""

import atexit
import hashlib
import json
import logging
import math
import os
import platform
import shlex
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from importlib.metadata import version
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kedro.framework.hooks import hook_impl
from kedro.io import DataCatalog
from kedro.pipeline import Pipeline

from deephash_pipeline.provenance import code_version
from deephash_pipeline.training import TrainingInterrupted

if TYPE_CHECKING:
    from mlflow import MlflowClient

logger = logging.getLogger(__name__)

DATABASE = "mlflow.db"
ARTIFACTS = "mlartifacts"
BENCHMARK_PARAMETERS = ("experiment.benchmark", "benchmark")
UNNAMED_BENCHMARK = "unnamed"
PACKAGES = ("deephash-pipeline", "kedro", "mlflow", "numpy", "torch")

METRICS_SUFFIX = ".metrics"
CURVES_SUFFIX = ".curves"
HISTORY_SUFFIX = ".history"
PRE_TRAINING_HISTORY = "pre_training_history"
REPORT = "report"
GALLERY = "gallery"
TABLE_SUFFIX = "_table"
FIGURE_PREFIX = "figure_"

CODE_TAGS = {"git_commit": "mlflow.source.git.commit", "git_dirty": "git_dirty"}
CONFIGURATION_TAG = "configuration"
COMMAND_TAG = "mlflow.source.name"
INTERRUPTED = ("RUNNING", "KILLED")

LONGEST_PARAMETER = 500
LONGEST_TAG = 5000


class MlflowTracking:
    """Writes every run to `mlflow.db` and `mlartifacts/` in the project's root, from whatever folder it is started."""

    def __init__(self) -> None:
        self._client: MlflowClient | None = None
        self._experiment = ""
        self._run: str | None = None

    @hook_impl
    def before_pipeline_run(self, run_params: dict[str, Any], pipeline: Pipeline, catalog: DataCatalog) -> None:
        """Open the parent run: the parameters that the pipeline consumes; where, how and from what code it runs."""
        self._close("KILLED")
        with _only_a_warning("open a run"):
            project = Path(run_params["project_path"]).resolve()
            benchmark = _benchmark(catalog)
            client = self._client = _connect(project / DATABASE)
            self._experiment = _experiment(client, benchmark, project / ARTIFACTS)
            tags = _run_tags(run_params, project) | {"benchmark": benchmark}
            parameters = _consumed_parameters(pipeline, catalog)
            tags[CONFIGURATION_TAG] = _configuration(tags, parameters)
            self._run = _interrupted_run(client, self._experiment, tags[CONFIGURATION_TAG])
            if self._run is None:
                name = f"{tags['pipeline']} {tags['environment']}"
                self._run = client.create_run(self._experiment, run_name=name, tags=tags).info.run_id
                _log(client, self._run, parameters=parameters)
            else:
                client.update_run(self._run, status="RUNNING")
            # An interrupted run reaches no hook: left open, it would be shown as running for ever.
            atexit.register(self._close, "KILLED")

    @hook_impl
    def after_pipeline_run(self, pipeline: Pipeline, catalog: DataCatalog) -> None:
        """Log the cells, tables and figures that the run made or read, where they are stored; close the run."""
        client, parent = self._client, self._run
        if client is None or parent is None:
            return
        for name in sorted(filter(_is_logged, pipeline.datasets())):
            with _only_a_warning(f"log {name}"):
                if not catalog.exists(name):
                    continue
                if name.endswith(METRICS_SUFFIX):
                    self._log_cell(client, parent, name.removesuffix(METRICS_SUFFIX), catalog)
                else:
                    _log_artifact(client, parent, name, catalog.load(name))
        self._close("FINISHED")

    @hook_impl
    def on_pipeline_error(self, error: Exception) -> None:
        """Close the parent run as failed, or as killed if somebody stopped it, with the error's text as a tag."""
        with _only_a_warning("note the error"):
            if self._client is not None and self._run is not None:
                self._client.set_tag(self._run, "error", f"{type(error).__name__}: {error}"[:LONGEST_TAG])
        self._close("KILLED" if isinstance(error, TrainingInterrupted) else "FAILED")

    def _log_cell(self, client: "MlflowClient", parent: str, cell: str, catalog: DataCatalog) -> None:
        """Write one child run: the figures of a cell, its precision-recall curves and its training history."""
        content = catalog.load(f"{cell}{METRICS_SUFFIX}")
        identity = {key: content[key] for key in ("method", "code_length")}
        figures = [(key, value, 0) for key, value in content.items() if key not in identity and _is_number(value)]
        if catalog.exists(f"{cell}{HISTORY_SUFFIX}"):
            figures += _steps(catalog.load(f"{cell}{HISTORY_SUFFIX}"))
        curves = f"{cell}{CURVES_SUFFIX}"
        text = _csv(catalog.load(curves)) if catalog.exists(curves) else None

        # All is read by now, so a file that cannot be read leaves no child run that is never closed.
        name = f"{identity['method']}.b{identity['code_length']}"
        run = client.create_run(self._experiment, run_name=name, tags={"mlflow.parentRunId": parent}).info.run_id
        # One call for all numbers: in every call MLflow looks the run up and waits for the disk.
        _log(client, run, figures, {key: str(value) for key, value in identity.items()})
        if text is not None:
            client.log_text(run, text, "curves.csv")
        client.set_terminated(run)

    def _close(self, status: str) -> None:
        run, self._run = self._run, None
        with _only_a_warning("close the run"):
            if self._client is not None and run is not None:
                self._client.set_terminated(run, status)


@contextmanager
def _only_a_warning(action: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        logger.warning(
            "MLflow could not %s, and the run goes on without it: %s: %s", action, type(error).__name__, error
        )


def _connect(database: Path) -> "MlflowClient":
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("DO_NOT_TRACK", "true")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    # Asked for what it cannot open or write, MLflow tries for minutes before it gives up.
    with closing(sqlite3.connect(database)) as probe:
        probe.execute("BEGIN IMMEDIATE")

    from mlflow import MlflowClient  # noqa: PLC0415 - takes seconds, which `kedro registry list` need not wait for

    return MlflowClient(f"sqlite:///{database.as_posix()}")


def _experiment(client: "MlflowClient", name: str, artifacts: Path) -> str:
    found = client.get_experiment_by_name(name)
    return found.experiment_id if found else client.create_experiment(name, artifact_location=artifacts.as_uri())


def _benchmark(catalog: DataCatalog) -> str:
    parameters = _flatten("", catalog.load("parameters")) if catalog.exists("parameters") else {}
    return next((parameters[key] for key in BENCHMARK_PARAMETERS if key in parameters), UNNAMED_BENCHMARK)


def _run_tags(run_params: dict[str, Any], project: Path) -> dict[str, str]:
    import torch  # noqa: PLC0415 - as late as MLflow

    return {
        COMMAND_TAG: shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:LONGEST_TAG],
        "mlflow.source.type": "LOCAL",
        "pipeline": ",".join(run_params.get("pipeline_names") or ["__default__"]),
        "environment": run_params.get("env") or "digits",
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "version.python": platform.python_version(),
        **{f"version.{package}": version(package) for package in PACKAGES},
        **{CODE_TAGS[key]: value for key, value in code_version(project).items() if key in CODE_TAGS},
    }


def _configuration(tags: Mapping[str, str], parameters: Mapping[str, str]) -> str:
    """Digest what makes two commands the same one: what they run, with which parameters."""
    said = {
        **parameters,
        "pipeline": tags["pipeline"],
        "environment": tags["environment"],
        "command": tags[COMMAND_TAG],
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _interrupted_run(client: "MlflowClient", experiment: str, configuration: str) -> str | None:
    """Find the last run if the same command was killed before its end: its curves are to go on in the same run."""
    found = client.search_runs(
        [experiment],
        f"tags.{CONFIGURATION_TAG} = '{configuration}'",
        max_results=1,
        order_by=["attributes.start_time DESC"],
    )
    return found[0].info.run_id if found and found[0].info.status in INTERRUPTED else None


def _consumed_parameters(pipeline: Pipeline, catalog: DataCatalog) -> dict[str, str]:
    flat: dict[str, str] = {}
    for name in sorted(pipeline.inputs()):
        if name == "parameters" or name.startswith("params:"):
            flat |= _flatten(name.removeprefix("params:").removeprefix("parameters"), catalog.load(name))
    return flat


def _flatten(key: str, value: Any) -> dict[str, str]:
    """Turn nested parameters, pydantic models included, into dotted keys and short texts."""
    value = value.model_dump() if hasattr(value, "model_dump") else value
    if not isinstance(value, Mapping):
        return {key: str(value)[:LONGEST_PARAMETER]}
    flat: dict[str, str] = {}
    for part, held in value.items():
        flat |= _flatten(f"{key}.{part}" if key else str(part), held)
    return flat


def _log(
    client: "MlflowClient",
    run: str,
    figures: Iterable[tuple[str, float, int]] = (),
    parameters: Mapping[str, str] | None = None,
) -> None:
    """Log figures, as (name, value, step), and parameters; MLflow itself splits what is too many for one batch."""
    from mlflow.entities import Metric, Param  # noqa: PLC0415 - as late as MLflow

    now = int(time.time() * 1000)
    metrics = [Metric(key, float(value), now, step) for key, value, step in figures]
    client.log_batch(run, metrics, [Param(key, value) for key, value in (parameters or {}).items()])


def _is_logged(name: str) -> bool:
    if "." in name:
        return name.endswith(METRICS_SUFFIX)
    return (
        name.endswith(TABLE_SUFFIX) or name.startswith(FIGURE_PREFIX) or name in (REPORT, GALLERY, PRE_TRAINING_HISTORY)
    )


def _log_artifact(client: "MlflowClient", run: str, name: str, content: Any) -> None:
    if name.endswith(TABLE_SUFFIX):
        client.log_text(run, _csv(content), f"{name}.csv")
    elif name == PRE_TRAINING_HISTORY:
        _log(client, run, _steps(content))
    elif name == GALLERY:
        client.log_image(run, content, f"{name}.png")
    else:
        html = content if name == REPORT else content.to_html(include_plotlyjs=True)
        client.log_text(run, html, f"{name}.html")


def _steps(history: Any) -> Iterator[tuple[str, float, int]]:
    """Yield the numbers of a training history, a frame with a row per epoch, as ("<stage>/<column>", value, epoch)."""
    for row, held in enumerate(history.to_dict("records")):
        stage, step = held.get("stage", "training"), int(held.get("epoch", row))
        for column, value in held.items():
            if column not in ("epoch", "code_length") and _is_number(value):
                yield f"{stage}/{column}", value, step


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _csv(frame: Any) -> str:
    text: str = frame.to_csv(index=frame.index.name is not None)
    return text
