import logging
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go  # type: ignore[import-untyped]
import pytest
from git import Repo
from kedro.io import DataCatalog, MemoryDataset
from kedro.pipeline import Node, Pipeline
from mlflow import MlflowClient
from mlflow.entities import Run
from pydantic import BaseModel

from deephash_pipeline.datasets import JSONDataset
from deephash_pipeline.tracking import MlflowTracking
from deephash_pipeline.training import TrainingInterrupted


class Options(BaseModel):
    epochs: int = 3
    schedule: dict[str, str] = {"name": "one_cycle"}


METRICS = {"method": "itq", "code_length": 12, "mean_average_precision": 0.5, "queries": np.int64(7), "note": "text"}
METRICS |= {"validation_mean_average_precision": None, "chance_level": float("nan"), "finished": True}
CURVES = pd.DataFrame({"kind": ["radius"], "point": [0], "precision": [1.0], "recall": [0.25]})
HISTORY = pd.DataFrame({"epoch": [1, 2], "loss": [0.9, 0.4], "true_loss": [np.nan, 0.8]})
MAP_TABLE = pd.DataFrame({"method": ["ITQ"], "12": [0.5]})


def evaluate(options: Options, seed: int) -> tuple[dict[str, Any], pd.DataFrame]:
    return METRICS, CURVES


def report(metrics: dict[str, Any]) -> tuple[pd.DataFrame, go.Figure, str]:
    return MAP_TABLE, go.Figure(go.Scatter(x=[12], y=[0.5])), "<h1>Report</h1>"


CELL = Pipeline(
    [Node(evaluate, ["params:options", "params:seed"], ["metrics", "curves"], name="evaluate")],
    namespace="itq.b12",
    parameters={"params:options", "params:seed"},
)
REPORTING = Pipeline(
    [Node(report, "metrics", ["map_table", "figure_map", "report"], name="report")],
    inputs={"metrics": "itq.b12.metrics"},
)
PIPELINE = Pipeline([CELL, REPORTING])


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One project for the module: MLflow takes seconds to make a database. Every test has a benchmark of its own."""
    return tmp_path_factory.mktemp("a project")


@pytest.fixture
def client(project: Path) -> Callable[[], MlflowClient]:
    return lambda: MlflowClient(f"sqlite:///{project / 'mlflow.db'}")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run in a working directory that is not the project, and find nothing written there."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    yield
    assert not list((tmp_path / "elsewhere").iterdir())


def stored_catalog(benchmark: str, options: Any = None, **held: Any) -> DataCatalog:
    options = options or Options()
    parameters = {"experiment": {"benchmark": benchmark}, "options": options, "seed": 42, "unused": 1}
    catalog = DataCatalog()
    for name, value in {"parameters": parameters, "params:options": options, "params:seed": 42, **held}.items():
        catalog[name] = MemoryDataset(value, copy_mode="assign")
    return catalog


def run(project: Path, catalog: DataCatalog, pipeline: Pipeline = PIPELINE, env: str | None = "mnist") -> None:
    """Do what a Kedro session does around the runner."""
    hook = MlflowTracking()
    run_params = {"project_path": project.as_posix(), "pipeline_names": ["evaluation", "reporting"], "env": env}
    hook.before_pipeline_run(run_params=run_params, pipeline=pipeline, catalog=catalog)
    try:
        for node in pipeline.nodes:
            node_outputs = node.run({name: catalog.load(name) for name in node.inputs})
            for name, value in node_outputs.items():
                catalog[name] = MemoryDataset(value, copy_mode="assign")
    except ArithmeticError as error:
        hook.on_pipeline_error(error=error)
        return
    hook.after_pipeline_run(pipeline=pipeline, catalog=catalog)


def runs(client: MlflowClient, benchmark: str) -> tuple[Run, list[Run]]:
    experiment = client.get_experiment_by_name(benchmark)
    assert experiment is not None
    found = client.search_runs([experiment.experiment_id])
    parents = [run for run in found if "mlflow.parentRunId" not in run.data.tags]
    children = [run for run in found if "mlflow.parentRunId" in run.data.tags]
    assert len(parents) == 1
    assert all(child.data.tags["mlflow.parentRunId"] == parents[0].info.run_id for child in children)
    return parents[0], children


def artifacts(client: MlflowClient, run: Run) -> dict[str, str]:
    folder = Path(client.download_artifacts(run.info.run_id, ""))
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_run_is_a_parent_with_parameters_and_tags(project: Path, client: Callable[[], MlflowClient]) -> None:
    run(project, stored_catalog("parent"))
    parent, _ = runs(client(), "parent")
    assert parent.info.run_name == "evaluation,reporting mnist"
    assert parent.info.status == "FINISHED"
    assert parent.data.params == {"options.epochs": "3", "options.schedule.name": "one_cycle", "seed": "42"}
    tags = parent.data.tags
    assert (tags["benchmark"], tags["environment"], tags["pipeline"]) == ("parent", "mnist", "evaluation,reporting")
    assert tags["version.kedro"] and tags["version.torch"] and tags["version.python"] and tags["device"]
    assert "mlflow.source.git.commit" not in tags


def test_each_cell_is_a_child_with_its_figures_and_curves(project: Path, client: Callable[[], MlflowClient]) -> None:
    run(project, stored_catalog("cells"))
    _, (child,) = runs(client(), "cells")
    assert child.info.run_name == "itq.b12"
    assert child.info.status == "FINISHED"
    assert child.data.params == {"method": "itq", "code_length": "12"}
    assert child.data.metrics == {"mean_average_precision": 0.5, "queries": 7.0}
    assert artifacts(client(), child) == {"curves.csv": "kind,point,precision,recall\nradius,0,1.0,0.25\n"}


def test_tables_figures_and_report_are_artifacts_of_the_parent(
    project: Path, client: Callable[[], MlflowClient]
) -> None:
    run(project, stored_catalog("artifacts"))
    parent, _ = runs(client(), "artifacts")
    held = artifacts(client(), parent)
    assert set(held) == {"map_table.csv", "figure_map.html", "report.html"}
    assert held["map_table.csv"] == "method,12\nITQ,0.5\n"
    assert held["report.html"] == "<h1>Report</h1>"
    assert 'src="http' not in held["figure_map.html"]
    assert (project / "mlartifacts" / parent.info.run_id / "artifacts" / "report.html").is_file()


def test_histories_become_metrics_by_epoch(project: Path, client: Callable[[], MlflowClient]) -> None:
    staged = HISTORY.assign(stage="fine_tuning", code_length=12)
    catalog = stored_catalog("histories", pre_training_history=HISTORY, **{"itq.b12.history": staged})
    reader = Node(lambda history: "", "pre_training_history", "report", name="read")
    run(project, catalog, Pipeline([CELL, reader]))
    parent, (child,) = runs(client(), "histories")
    for logged, stage in ((parent, "training"), (child, "fine_tuning")):
        steps = client().get_metric_history(logged.info.run_id, f"{stage}/loss")
        assert sorted((point.step, point.value) for point in steps) == [(1, 0.9), (2, 0.4)]
        assert [point.step for point in client().get_metric_history(logged.info.run_id, f"{stage}/true_loss")] == [2]
    assert not [key for key in child.data.metrics if "code_length" in key or "epoch" in key]


def test_a_history_of_any_length_is_logged_whole(project: Path, client: Callable[[], MlflowClient]) -> None:
    epochs = np.arange(1, 1202)
    history = pd.DataFrame({"epoch": epochs, "loss": 1 / epochs})
    run(project, stored_catalog("long", **{"itq.b12.history": history}), CELL)
    _, (child,) = runs(client(), "long")
    logged = client().get_metric_history(child.info.run_id, "training/loss")
    assert sorted(point.step for point in logged) == epochs.tolist()
    assert child.data.params == {"method": "itq", "code_length": "12"}


def test_results_of_an_earlier_run_are_logged_again(project: Path, client: Callable[[], MlflowClient]) -> None:
    cached = stored_catalog("cached", **{"itq.b12.metrics": METRICS, "itq.b12.curves": CURVES})
    run(project, cached, REPORTING)
    _, (child,) = runs(client(), "cached")
    assert child.data.metrics["mean_average_precision"] == 0.5
    assert list(artifacts(client(), child)) == ["curves.csv"]


def test_a_partial_run_logs_only_what_is_stored(
    project: Path, client: Callable[[], MlflowClient], caplog: pytest.LogCaptureFixture
) -> None:
    hook, catalog = MlflowTracking(), stored_catalog("partial")
    catalog["itq.b12.metrics"] = JSONDataset(filepath=str(project / "no_such_metrics.json"))
    hook.before_pipeline_run(run_params={"project_path": str(project)}, pipeline=PIPELINE, catalog=catalog)
    with caplog.at_level(logging.WARNING, "deephash_pipeline"):
        hook.after_pipeline_run(pipeline=PIPELINE, catalog=catalog)
    parent, children = runs(client(), "partial")
    assert parent.info.status == "FINISHED" and parent.info.run_name == "__default__ base"
    assert not children and not client().list_artifacts(parent.info.run_id)
    assert not caplog.records


def test_a_failed_run_is_marked_with_its_error(project: Path, client: Callable[[], MlflowClient]) -> None:
    def fail(seed: int) -> None:
        raise ZeroDivisionError("no images")

    run(project, stored_catalog("failed"), Pipeline([Node(fail, "params:seed", "report", name="fail")]))
    parent, children = runs(client(), "failed")
    assert parent.info.status == "FAILED"
    assert parent.data.tags["error"] == "ZeroDivisionError: no images"
    assert not children


def test_many_and_long_parameters_are_logged_whole_batches_and_cut_short(
    project: Path, client: Callable[[], MlflowClient]
) -> None:
    options = {"long": "x" * 9000, **{f"option_{number}": number for number in range(230)}}
    run(project, stored_catalog("many", options))
    parent, _ = runs(client(), "many")
    assert len(parent.data.params) == 232
    assert parent.data.params["options.long"] == "x" * 500


def test_an_interrupted_run_is_closed_when_the_next_begins(project: Path, client: Callable[[], MlflowClient]) -> None:
    hook, run_params = MlflowTracking(), {"project_path": str(project)}
    hook.before_pipeline_run(run_params=run_params, pipeline=PIPELINE, catalog=stored_catalog("interrupted"))
    hook.before_pipeline_run(run_params=run_params, pipeline=PIPELINE, catalog=stored_catalog("afterwards"))
    assert runs(client(), "interrupted")[0].info.status == "KILLED"
    hook.after_pipeline_run(pipeline=PIPELINE, catalog=stored_catalog("afterwards"))


def test_the_same_command_goes_on_in_the_run_that_was_killed(project: Path, client: Callable[[], MlflowClient]) -> None:
    def begin(seed: int) -> str | None:
        options = Options()
        catalog = DataCatalog()
        for name, value in {
            "parameters": {"experiment": {"benchmark": "killed"}},
            "params:options": options,
            "params:seed": seed,
        }.items():
            catalog[name] = MemoryDataset(value, copy_mode="assign")
        hook = MlflowTracking()
        hook.before_pipeline_run({"project_path": str(project)}, PIPELINE, catalog)
        hooks.append(hook)
        return hook._run

    hooks: list[MlflowTracking] = []
    first = begin(seed=1)
    again = begin(seed=1)
    other = begin(seed=2)
    assert again == first
    assert other != first
    hooks[1].on_pipeline_error(TrainingInterrupted("stopped behind step 3", 15))
    assert client().get_run(str(first)).info.status == "KILLED"
    assert begin(seed=1) == first
    assert client().get_run(str(first)).info.status == "RUNNING"
    hooks[-1].on_pipeline_error(ZeroDivisionError("a mistake"))
    assert begin(seed=1) != first
    for hook in hooks:
        hook._close("KILLED")


def test_without_a_usable_database_the_run_goes_on_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "mlflow.db").mkdir()
    catalog = stored_catalog("unusable")
    with caplog.at_level(logging.WARNING, "deephash_pipeline"):
        run(tmp_path, catalog)
    assert catalog.load("report") == "<h1>Report</h1>"
    assert ["could not open a run" in record.getMessage() for record in caplog.records] == [True]


def test_a_result_that_mlflow_refuses_costs_only_itself(
    project: Path, client: Callable[[], MlflowClient], caplog: pytest.LogCaptureFixture
) -> None:
    broken = Node(lambda seed: {"no": "method"}, "params:seed", "metrics", name="break")
    broken_cell = Pipeline([broken], namespace="lsh.b12", parameters={"params:seed"})
    with caplog.at_level(logging.WARNING, "deephash_pipeline"):
        run(project, stored_catalog("refused"), Pipeline([CELL, broken_cell]))
    parent, children = runs(client(), "refused")
    assert parent.info.status == "FINISHED"
    assert [child.info.run_name for child in children] == ["itq.b12"]
    assert ["could not log lsh.b12.metrics" in record.getMessage() for record in caplog.records] == [True]


def test_a_cell_whose_files_cannot_be_read_leaves_no_run_open(
    project: Path, tmp_path: Path, client: Callable[[], MlflowClient], caplog: pytest.LogCaptureFixture
) -> None:
    catalog = stored_catalog("broken", **{"itq.b12.metrics": METRICS})
    (tmp_path / "history.json").write_text("{")
    catalog["itq.b12.history"] = JSONDataset(filepath=str(tmp_path / "history.json"))
    with caplog.at_level(logging.WARNING, "deephash_pipeline"):
        run(project, catalog, REPORTING)
    parent, children = runs(client(), "broken")
    assert parent.info.status == "FINISHED"
    assert not children
    assert ["could not log itq.b12.metrics" in record.getMessage() for record in caplog.records] == [True]


def test_the_commit_and_whether_the_code_differs_are_tagged(
    tmp_path: Path, project: Path, client: Callable[[], MlflowClient]
) -> None:
    clone = tmp_path / "clone"
    with Repo.init(clone) as repository:
        (clone / ".gitignore").write_text("mlflow.db\nmlartifacts/\n")
        repository.index.add([".gitignore"])
        commit = repository.index.commit("first").hexsha
    with sqlite3.connect(project / "mlflow.db") as source, sqlite3.connect(clone / "mlflow.db") as target:
        source.backup(target)
    cloned = MlflowClient(f"sqlite:///{clone / 'mlflow.db'}")
    run(clone, stored_catalog("clean"))
    (clone / "new.py").write_text("")
    run(clone, stored_catalog("changed"))
    clean, changed = (runs(cloned, name)[0].data.tags for name in ("clean", "changed"))
    assert clean["mlflow.source.git.commit"] == changed["mlflow.source.git.commit"] == commit
    assert (clean["git_dirty"], changed["git_dirty"]) == ("false", "true")
