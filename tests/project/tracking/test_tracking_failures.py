"""Runs that fail, are interrupted or cannot be logged whole, and how MLflow shows them."""

import fcntl
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from unittest.mock import MagicMock

import pandas as pd
import pytest
from kedro.io import MemoryDataset
from kedro.pipeline import Node, Pipeline
from mlflow import MlflowClient

from deephash_pipeline.project.tracking import MlflowTracking
from deephash_pipeline.project.tracking.store import MlflowStore
from deephash_pipeline.training import TrainingInterrupted
from tests.project.datasets.kinds import json_dataset
from tests.project.tracking.tracked_runs import CELL, METRICS, PIPELINE, REPORTING, run, runs, stored_catalog

HISTORY = pd.DataFrame({"epoch": [1, 2], "loss": [0.9, 0.4]})


def stop(seed):
    raise TrainingInterrupted("stopped after step 3", 15)


STOPPED = Pipeline([Node(stop, "params:seed", "report", name="stop")])
KILLED = Pipeline([CELL, Pipeline([Node(lambda curves, seed: stop(seed), ["itq.b12.curves", "params:seed"], "last")])])


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
    monkeypatch.setattr("mlflow.MlflowClient", lambda _: connected.set() or MagicMock())
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with ThreadPoolExecutor() as thread:
        store = thread.submit(MlflowStore, tmp_path, "digits")
        assert not connected.wait(1)
        os.close(folder)
        store.result(timeout=60)
    assert connected.is_set()


def test_an_interrupted_run_is_closed_when_the_next_begins(project, client):
    hook, run_params = MlflowTracking(), {"project_path": str(project)}
    hook.before_pipeline_run(run_params=run_params, pipeline=PIPELINE, catalog=stored_catalog("interrupted"))
    hook.before_node_run(node=PIPELINE.nodes[0])
    hook.before_pipeline_run(run_params=run_params, pipeline=PIPELINE, catalog=stored_catalog("afterwards"))
    assert runs(client(), "interrupted")[0].info.status == "KILLED"
    hook.before_node_run(node=PIPELINE.nodes[0])
    hook.after_pipeline_run(pipeline=PIPELINE, catalog=stored_catalog("afterwards"))


def test_the_same_command_goes_on_in_the_run_that_was_killed(project, client):
    def begin(seed, nothing_to_do=False):
        catalog = stored_catalog("killed")
        catalog["params:seed"] = MemoryDataset(seed)
        hooks.append(MlflowTracking())
        hooks[-1].before_pipeline_run({"project_path": str(project)}, PIPELINE, catalog)
        if nothing_to_do:
            hooks[-1].after_pipeline_run(PIPELINE, catalog)
            return ""
        hooks[-1].before_node_run(PIPELINE.nodes[0])
        opened = hooks[-1]._opened()
        return opened.parent

    def status(run):
        return str(client().get_run(run).info.status)

    hooks = []
    first = begin(seed=1)
    again = begin(seed=1)
    other = begin(seed=2)
    assert again == first
    assert other != first
    hooks[1].on_pipeline_error(TrainingInterrupted("stopped after step 3", 15))
    assert status(first) == "KILLED"
    assert begin(seed=1) == first
    assert status(first) == "RUNNING"
    hooks[-1].on_pipeline_error(ZeroDivisionError("a mistake"))
    last = begin(seed=1)
    assert last != first
    begin(seed=1, nothing_to_do=True)
    assert status(last) == "FINISHED"
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


def test_a_database_that_was_left_half_made_is_made_anew(tmp_path):
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as database:
        database.execute("CREATE TABLE experiments (experiment_id INTEGER)")
        database.execute("CREATE TABLE alembic_version (version_num VARCHAR(32))")
    assert MlflowStore(tmp_path, "digits").open("first", {})


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
    catalog = stored_catalog("broken", **{"itq.b12.metrics": METRICS})
    (tmp_path / "history.json").write_text("{")
    catalog["itq.b12.history"] = json_dataset(str(tmp_path / "history.json"))
    with caplog.at_level(logging.WARNING, "deephash_pipeline"):
        run(project, catalog, REPORTING)
    parent, children = runs(client(), "broken")
    assert parent.info.status == "FINISHED"
    assert not children
    assert ["could not log itq.b12.metrics" in record.getMessage() for record in caplog.records] == [True]


def test_what_a_killed_run_has_logged_is_not_logged_twice(project, client):
    catalog = stored_catalog("resumed", **{"itq.b12.history": HISTORY})
    run(project, catalog, KILLED)
    parent, (child,) = runs(client(), "resumed")
    assert (parent.info.status, child.info.status) == ("KILLED", "FINISHED")
    run(project, catalog, KILLED)
    (again,) = runs(client(), "resumed")[1]
    assert (again.info.run_id, again.info.start_time) == (child.info.run_id, child.info.start_time)
    assert again.info.end_time == child.info.end_time
    for key in ("mean_average_precision", "training/loss"):
        assert len(client().get_metric_history(child.info.run_id, key)) == {"training/loss": 2}.get(key, 1)


def test_a_cell_that_was_still_training_is_killed_with_its_run(project, client):
    training = Pipeline(
        [Node(lambda seed: HISTORY, "params:seed", "history", name="train")],
        namespace="itq.b12",
        parameters={"params:seed"},
    )
    run(project, stored_catalog("training"), Pipeline([training, STOPPED]))
    parent, (child,) = runs(client(), "training")
    assert (parent.info.status, child.info.status) == ("KILLED", "KILLED")


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.complete)])
def test_a_signal_outside_training_ends_the_run_as_killed(project, number):
    program = f"""
import os, sys, threading
from pathlib import Path
from kedro.pipeline import Node, Pipeline
from tests.project.tracking.tracked_runs import run, stored_catalog

def wait(seed):
    # Python's own exit code for Ctrl-C is lost if another thread imports something meanwhile.
    for thread in threading.enumerate():
        if {number == signal.SIGINT} and thread.name.startswith("mlflow"):
            thread.join()
    os.kill(os.getpid(), {int(number)})

wait = Node(wait, "params:seed", "report", name="wait")
run(Path(sys.argv[1]), stored_catalog("signal{int(number)}"), Pipeline([wait]))
"""
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", program, str(project)]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode in (128 + number, -number), ended.stderr
    client = MlflowClient(f"sqlite:///{project / 'mlflow.db'}")
    assert runs(client, f"signal{int(number)}")[0].info.status == "KILLED"


def test_after_a_run_sigterm_is_handled_as_before(project):
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    run(project, stored_catalog("handled"))
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
