import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from git import Repo
from kedro.pipeline import Node, Pipeline
from mlflow import MlflowClient
from mlflow.entities import Run

from deephash_pipeline.tracking import MlflowTracking
from tests.datasets.kinds import json_dataset
from tests.tracking.tracked_runs import CELL, CURVES, METRICS, PIPELINE, REPORTING, run, runs, stored_catalog

HISTORY = pd.DataFrame({"epoch": [1, 2], "loss": [0.9, 0.4], "true_loss": [np.nan, 0.8]})


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
    catalog["itq.b12.metrics"] = json_dataset(str(project / "no_such_metrics.json"))
    hook.before_pipeline_run(run_params={"project_path": str(project)}, pipeline=PIPELINE, catalog=catalog)
    with caplog.at_level(logging.WARNING, "deephash_pipeline"):
        hook.after_pipeline_run(pipeline=PIPELINE, catalog=catalog)
    parent, children = runs(client(), "partial")
    assert parent.info.status == "FINISHED" and parent.info.run_name == "__default__ base"
    assert not children and not client().list_artifacts(parent.info.run_id)
    assert not caplog.records


def test_many_and_long_parameters_are_logged_whole_batches_and_cut_short(
    project: Path, client: Callable[[], MlflowClient]
) -> None:
    options = {"long": "x" * 9000, **{f"option_{number}": number for number in range(230)}}
    run(project, stored_catalog("many", options))
    parent, _ = runs(client(), "many")
    assert len(parent.data.params) == 232
    assert parent.data.params["options.long"] == "x" * 500


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
