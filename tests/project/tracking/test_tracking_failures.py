"""Runs that fail, are interrupted or cannot be logged whole, and how MLflow shows them."""

import fcntl
import logging
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import MagicMock

import pandas as pd
import pytest
from kedro.pipeline import Node, Pipeline
from mlflow import MlflowClient

from deephash_pipeline.project.tracking import MlflowTracking
from deephash_pipeline.project.tracking.store import MlflowStore
from deephash_pipeline.training import TrainingInterrupted
from tests.project.datasets.kinds import json_dataset
from tests.project.tracking.tracked_runs import CELL, PIPELINE, run, runs, stored_catalog

HISTORY = pd.DataFrame({"epoch": [1, 2], "loss": [0.9, 0.4]})


def stop(seed):
    raise TrainingInterrupted("stopped after step 3", 15)


STOPPED = Pipeline([Node(stop, "params:seed", "report", name="stop")])


def test_a_failed_run_is_marked_with_its_error(project, client):
    def fail(seed):
        raise ZeroDivisionError("no images")

    run(project, stored_catalog("failed"), Pipeline([Node(fail, "params:seed", "report", name="fail")]))
    parent, children = runs(client(), "failed")
    assert parent.info.status == "FAILED"
    assert parent.data.tags["error"] == "ZeroDivisionError: no images"
    assert not children


def test_a_run_waits_for_another_that_makes_the_database(tmp_path, monkeypatch):
    connected = threading.Event()
    monkeypatch.setattr("mlflow.MlflowClient", lambda *_, **__: connected.set() or MagicMock())
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with ThreadPoolExecutor() as thread:
        store = thread.submit(MlflowStore, tmp_path, "digits")
        assert not connected.wait(1)
        os.close(folder)
        store.result(timeout=60)
    assert connected.is_set()


def test_runs_of_an_experiment_that_was_deleted_are_tracked_in_it_again(project, client):
    run(project, stored_catalog("deleted"))
    experiment = client().get_experiment_by_name("deleted").experiment_id
    client().delete_experiment(experiment)
    run(project, stored_catalog("deleted"))
    # Each with a cell.
    assert len(client().search_runs([experiment])) == 4


def test_an_interrupted_run_is_closed_when_the_next_begins(project, client):
    hook, run_params = MlflowTracking(), {"project_path": str(project)}
    hook.before_pipeline_run(run_params=run_params, pipeline=PIPELINE, catalog=stored_catalog("interrupted"))
    hook.before_node_run(node=PIPELINE.nodes[0])
    hook.before_pipeline_run(run_params=run_params, pipeline=PIPELINE, catalog=stored_catalog("afterwards"))
    assert runs(client(), "interrupted")[0].info.status == "KILLED"
    hook.before_node_run(node=PIPELINE.nodes[0])
    hook.after_pipeline_run(pipeline=PIPELINE, catalog=stored_catalog("afterwards"))


def test_what_a_killed_run_has_left_open_is_closed_when_the_next_begins(project, client):
    def begin():
        hooks.append(MlflowTracking())
        hooks[-1].before_pipeline_run({"project_path": str(project)}, PIPELINE, stored_catalog("killed"))
        store, parent = hooks[-1]._opened()
        return parent, store.open("itq.b12", {})

    def statuses(found):
        return [str(client().get_run(run).info.status) for run in found]

    hooks = []
    killed, following = begin(), begin()
    assert set(killed).isdisjoint(following)
    assert (statuses(killed), statuses(following)) == (["KILLED"] * 2, ["RUNNING"] * 2)
    for hook in hooks:
        hook._close("KILLED")


KILLS = """
import os, random, signal, sys, time
from pathlib import Path
from mlflow import MlflowClient
from deephash_pipeline.project.tracking.store import MlflowStore

def child(project):
    process = os.fork()
    if not process:
        MlflowStore(project, "digits")
        os._exit(0)
    return process

folder, kills = Path(sys.argv[1]), int(sys.argv[2])
(folder / "undisturbed").mkdir()
begun = time.monotonic()
os.waitpid(child(folder / "undisturbed"), 0)
takes = time.monotonic() - begun
draw = random.Random(0)
for number in range(kills):
    process = child(folder)
    # One in each part of the time, for what is half made at one moment is nearly whole at another.
    time.sleep(takes * (number + draw.random()) / kills)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
assert MlflowStore(folder, "digits").open("again", {})
"""


@pytest.mark.complete
@pytest.mark.parametrize("kills", [4, pytest.param(30, marks=pytest.mark.chaos)])
def test_killed_while_the_database_is_made_the_next_run_is_tracked(tmp_path, kills):
    folder = tmp_path / "project"
    folder.mkdir()
    command = [sys.executable, "-c", KILLS, str(folder), str(kills)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stderr
    left = {path.name for path in folder.iterdir()} - {"undisturbed", "mlartifacts"}
    assert left == {"mlflow.db"}


def test_without_a_usable_database_the_run_goes_on_with_a_warning(tmp_path, caplog):
    (tmp_path / "mlflow.db").mkdir()
    catalog = stored_catalog("unusable")
    with caplog.at_level(logging.WARNING, "deephash_pipeline"):
        run(tmp_path, catalog)
    assert catalog.load("report") == "<h1>Report</h1>"
    assert ["could not open a run" in record.getMessage() for record in caplog.records] == [True]
    assert "\n" not in caplog.text.strip()


def test_a_result_that_mlflow_refuses_costs_only_itself(project, client, caplog):
    broken = Node(lambda seed: {"no": "method"}, "params:seed", "metrics", name="break")
    broken_cell = Pipeline([broken], namespace="lsh.b12", parameters={"params:seed"})
    with caplog.at_level(logging.WARNING, "deephash_pipeline"):
        run(project, stored_catalog("refused"), Pipeline([CELL, broken_cell]))
    parent, children = runs(client(), "refused")
    assert parent.info.status == "FINISHED"
    assert [child.info.run_name for child in children] == ["itq.b12"]
    assert ["could not log lsh.b12.metrics" in record.getMessage() for record in caplog.records] == [True]


def test_a_cell_whose_files_cannot_be_read_leaves_no_run_open(project, tmp_path, client, caplog):
    catalog = stored_catalog("broken")
    (tmp_path / "history.json").write_text("{")
    catalog["itq.b12.history"] = json_dataset(str(tmp_path / "history.json"))
    with caplog.at_level(logging.WARNING, "deephash_pipeline"):
        run(project, catalog, CELL)
    parent, children = runs(client(), "broken")
    assert parent.info.status == "FINISHED"
    assert not children
    assert ["could not log itq.b12.metrics" in record.getMessage() for record in caplog.records] == [True]


def test_a_cell_that_was_not_measured_yet_is_killed_with_its_run(project, client):
    training = Pipeline(
        [Node(lambda seed: HISTORY, "params:seed", "history", name="train")],
        namespace="itq.b12",
        parameters={"params:seed"},
    )
    run(project, stored_catalog("training"), Pipeline([training, STOPPED]))
    parent, (child,) = runs(client(), "training")
    assert (parent.info.status, child.info.status) == ("KILLED", "KILLED")


def test_ctrl_c_outside_training_ends_the_run_as_killed(project):
    program = """
import os, signal, sys, threading
from pathlib import Path
from kedro.pipeline import Node, Pipeline
from tests.project.tracking.tracked_runs import run, stored_catalog

def wait(seed):
    # Python's own exit code for Ctrl-C is lost if another thread imports something meanwhile.
    for thread in threading.enumerate():
        if thread.name.startswith("mlflow"):
            thread.join()
    os.kill(os.getpid(), signal.SIGINT)

wait = Node(wait, "params:seed", "report", name="wait")
run(Path(sys.argv[1]), stored_catalog("interrupted by hand"), Pipeline([wait]))
"""
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", program, str(project)]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode in (128 + signal.SIGINT, -signal.SIGINT), ended.stderr
    client = MlflowClient(f"sqlite:///{project / 'mlflow.db'}")
    assert runs(client, "interrupted by hand")[0].info.status == "KILLED"
