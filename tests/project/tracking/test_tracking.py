import json
import logging
import sqlite3
import time

import numpy as np
import pandas as pd
from git import Repo
from kedro.pipeline import Node, Pipeline
from mlflow import MlflowClient

from deephash_pipeline.hashing import ITQ
from deephash_pipeline.project.datasets import EncoderDataset
from deephash_pipeline.project.tracking import MlflowTracking
from deephash_pipeline.project.tracking.description import run_name
from deephash_pipeline.provenance import Origin
from deephash_pipeline.provenance.manifest import read_manifest
from tests.project.datasets.kinds import json_dataset
from tests.project.tracking.tracked_runs import CELL, CURVES, METRICS, PIPELINE, REPORTING, run, runs, stored_catalog

HISTORY = pd.DataFrame({"epoch": [1, 2], "loss": [0.9, 0.4], "true_loss": [np.nan, 0.8]})


def artifacts(project, run):
    """Read the artifacts where `mlflow server --artifacts-destination mlartifacts` reads them."""
    assert run.info.artifact_uri == f"mlflow-artifacts:/{run.info.run_id}/artifacts"
    folder = project / "mlartifacts" / run.info.run_id / "artifacts"
    return {path.name: path.read_text() for path in folder.glob("*")}


def test_a_run_is_a_parent_with_parameters_tags_and_artifacts_and_each_cell_a_child_with_its_metrics(project, client):
    run(project, stored_catalog("parent"))
    parent, (child,) = runs(client(), "parent")
    assert parent.info.run_name == "evaluation,reporting mnist"
    assert parent.info.status == "FINISHED"
    assert parent.data.params == {"options.epochs": "3", "options.schedule.name": "one_cycle", "seed": "42"}
    tags = parent.data.tags
    assert (tags["benchmark"], tags["environment"], tags["pipeline"]) == ("parent", "mnist", "evaluation,reporting")
    assert tags["version.kedro"] and tags["version.torch"] and tags["version.python"] and tags["device"]
    assert "mlflow.source.git.commit" not in tags
    stored = artifacts(project, parent)
    assert set(stored) == {"map_table.csv", "report.html"}
    assert stored["map_table.csv"] == "method,12\nITQ,0.5\n"
    assert stored["report.html"] == "<h1>Report</h1>"
    assert child.info.run_name == "itq.b12"
    assert child.info.status == "FINISHED"
    assert child.data.params == {"method": "itq", "method_name": "ITQ", "code_length": "12"}
    assert artifacts(project, child) == {"curves.csv": "kind,point,precision,recall\nradius,0,1.0,0.25\n"}
    assert child.data.metrics.pop("seconds") >= 0
    assert child.data.metrics == {"mean_average_precision": 0.5, "queries": 7.0}
    view = json.loads(client().get_experiment_by_name("parent").tags["mlflow.sharedViewState.cells"])
    assert view["selectedColumns"][0] == view["orderByKey"] == "metrics.`mean_average_precision`"
    # The experiment opens on its runs.
    assert client().get_experiment_by_name("parent").tags["mlflow.experimentKind"] == "custom_model_development"


def test_histories_become_metrics_by_epoch(project, client):
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


def test_a_history_of_any_length_is_logged_whole(project, client):
    epochs = np.arange(1, 1202)
    history = pd.DataFrame({"epoch": epochs, "loss": 1 / epochs})
    run(project, stored_catalog("long", **{"itq.b12.history": history}), CELL)
    _, (child,) = runs(client(), "long")
    logged = client().get_metric_history(child.info.run_id, "training/loss")
    assert sorted(point.step for point in logged) == epochs.tolist()
    assert child.data.params == {"method": "itq", "method_name": "ITQ", "code_length": "12"}


def test_a_partial_run_logs_only_what_is_stored(project, client, caplog):
    hook, catalog = MlflowTracking(), stored_catalog("partial")
    catalog["itq.b12.metrics"] = json_dataset(str(project / "no_such_metrics.json"))
    hook.before_pipeline_run(run_params={"project_path": str(project)}, pipeline=PIPELINE, catalog=catalog)
    hook.before_node_run(node=PIPELINE.nodes[0])
    with caplog.at_level(logging.WARNING, "deephash_pipeline"):
        hook.after_pipeline_run(pipeline=PIPELINE, catalog=catalog)
    parent, children = runs(client(), "partial")
    assert parent.info.status == "FINISHED" and parent.info.run_name == "full digits"
    assert not children and not artifacts(project, parent)
    assert not caplog.records


def test_many_and_long_parameters_are_logged_whole_batches_and_cut_short(project, client):
    options = {"long": "x" * 9000, **{f"option_{number}": number for number in range(230)}}
    run(project, stored_catalog("many", options))
    parent, _ = runs(client(), "many")
    assert len(parent.data.params) == 232
    assert parent.data.params["options.long"] == "x" * 500


def test_the_commit_and_whether_the_code_differs_are_tagged(tmp_path, project, client):
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


def cell(method, score, bits="b12", after=lambda: None):
    """A cell that is trained and measured."""

    def measure(history):
        after()
        return {"method": method, "code_length": 12, "mean_average_precision": score}, CURVES

    return Pipeline(
        [
            Node(lambda seed: HISTORY, "params:seed", "history", name="train"),
            Node(measure, "history", ["metrics", "curves"], name="measure"),
        ],
        namespace=f"{method}.{bits}",
        parameters={"params:seed"},
    )


def test_the_parent_has_the_map_of_every_cell(project, client):
    cells = [cell("lsh", 0.25), cell("itq", 0.5), cell("one_of_c", 0.75, bits="bC"), cell("sh", None)]
    cells.append(cell("one_of_c", 0.7, bits="bC.r2"))
    run(project, stored_catalog("map"), Pipeline(cells))
    parent, _ = runs(client(), "map")
    scores = {"map/lsh.b12": 0.25, "map/itq.b12": 0.5, "map/one_of_c.bC": 0.75, "map/one_of_c.bC.r2": 0.7}
    assert parent.data.metrics == scores


def test_the_parent_of_a_run_that_only_reports_has_the_map_of_all_cells(project, client):
    metrics = [METRICS, {"method": "one_of_c", "code_length": 10, "mean_average_precision": 0.75}]
    reader = Node(lambda metrics: "", "all_metrics", "report", name="read")
    run(project, stored_catalog("reported", all_metrics=metrics), Pipeline([reader]))
    parent, children = runs(client(), "reported")
    assert parent.data.metrics == {"map/itq.b12": 0.5, "map/one_of_c.bC": 0.75}
    assert not children


def test_a_run_that_makes_nothing_new_logs_no_child_so_that_the_best_map_is_found_once(project, client):
    run(project, stored_catalog("once"))
    run(project, stored_catalog("once", **{"itq.b12.metrics": METRICS}), REPORTING)
    experiment = client().get_experiment_by_name("once").experiment_id
    assert len(client().search_runs([experiment])) == 3
    best = client().search_runs([experiment], "metrics.mean_average_precision > 0")
    assert [found.info.run_name for found in best] == ["itq.b12"]
    parents = client().search_runs([experiment], "metrics.`map/itq.b12` > 0")
    assert len(parents) == 2


def test_a_child_has_what_its_cell_encodes_by_without_a_copy(project, client):
    catalog = stored_catalog("model")
    file = project / "data" / "encoder.safetensors"
    catalog["itq.b12.encoder"] = EncoderDataset(filepath=str(file))
    catalog["itq.b12.encoder"].save(ITQ(code_length=4).fit(np.eye(9, 6)))
    run(project, catalog)
    _, (child,) = runs(client(), "model")
    logged = project / "mlartifacts" / child.info.run_id / "artifacts" / "encoder.safetensors"
    assert logged.samefile(file)
    assert child.data.tags["model"] == "data/encoder.safetensors"
    file.unlink()
    assert EncoderDataset(filepath=str(logged)).load().get_params()["code_length"] == 4


def test_a_run_is_named_by_what_was_selected():
    spaces = [f"{stage}.{cell}" for cell in ("itq.b12", "itq.b48") for stage in ("baseline_hashing", "evaluation")]
    assert run_name({"pipeline_names": ["full"], "namespaces": spaces, "env": "mnist"}) == "full itq.b12, itq.b48"
    several = run_name({"pipeline_names": ["field"], "tags": ["a", "b"], "to_nodes": ["c", "d", "e"]})
    assert several == "field tags=a, tags=b, to_nodes=c, and 2 more"


def test_a_cell_is_logged_while_the_run_goes_on(project, client):
    measured, seen = [], []

    def look():
        measured.append(1)
        if len(measured) == 2:
            seen.append(runs(client(), "live"))

    cells = [cell("lsh", 0.25, after=look), cell("itq", 0.5, after=look)]
    run(project, stored_catalog("live"), sum(cells, Pipeline([])))
    [(parent, (first,))] = seen
    assert (parent.info.status, first.info.status) == ("RUNNING", "FINISHED")
    assert {"training/loss", "mean_average_precision", "seconds"} <= first.data.metrics.keys()


def test_a_cell_lasts_from_its_first_node_to_the_end_of_its_last(project, client):
    begun = time.time()
    run(project, stored_catalog("lasting"), cell("itq", 0.5, after=lambda: time.sleep(0.25)))
    _, (child,) = runs(client(), "lasting")
    assert begun * 1000 - 1 <= child.info.start_time
    assert 250 <= child.info.end_time - child.info.start_time <= (time.time() - begun) * 1000
    assert 0.25 <= child.data.metrics["seconds"] <= (child.info.end_time - child.info.start_time + 2) / 1000


def evaluate_stored(project, catalog):
    """Let the hook see a run whose node has stored the metrics of the catalog."""
    hook = MlflowTracking()
    run_params = {"project_path": project.as_posix(), "pipeline_names": ["evaluation"], "env": None}
    hook.before_pipeline_run(run_params=run_params, pipeline=CELL, catalog=catalog)
    hook.before_node_run(node=CELL.nodes[0])
    hook.after_node_run(node=CELL.nodes[0], catalog=catalog)
    hook.after_pipeline_run(pipeline=CELL, catalog=catalog)


def test_what_a_cell_was_made_from_and_with_is_its_runs(project, client):
    catalog = stored_catalog("digests")
    metrics = json_dataset(project / "digests.json")
    origin = Origin(
        "measure",
        inputs={"itq.b12.codes": "c" * 32},
        parameters={
            "cells.r3.itq.b12.code_length": 12,
            "cells.r3.itq.b12.replicate": 3,
            "fine_tuning.itq.training.epochs": 3,
            "experiment.seed": 7,
            "raw_images": "a" * 32,
        },
    )
    metrics.expect("itq.b12.metrics", origin)
    metrics.save({**METRICS, "queries": 7, "chance_level": None})
    catalog["itq.b12.metrics"] = metrics
    evaluate_stored(project, catalog)
    _, (child,) = runs(client(), "digests")
    assert child.data.tags["digest.itq.b12.codes"] == "c" * 32
    assert child.data.tags["digest.raw_images"] == "a" * 32
    assert child.data.params == {
        "method": "itq",
        "method_name": "ITQ",
        "code_length": "12",
        "fine_tuning.itq.training.epochs": "3",
        "experiment.seed": "7",
        "seed": "9",
    }
    assert child.data.tags["digest.itq.b12.metrics"] == read_manifest(project / "digests.json").digest


def test_a_cell_that_is_measured_again_with_the_same_result_is_one_row_and_with_another_two(project, client):
    for queries in (7, 7, 8):
        catalog = stored_catalog("forced")
        metrics = catalog["itq.b12.metrics"] = json_dataset(project / "forced.json")
        metrics.expect("itq.b12.metrics", Origin("measure"))
        metrics.save({**METRICS, "queries": queries, "chance_level": None})
        evaluate_stored(project, catalog)
    experiment = client().get_experiment_by_name("forced").experiment_id
    found = client().search_runs([experiment], "metrics.mean_average_precision > 0")
    assert sorted(row.data.metrics["queries"] for row in found) == [7, 8]
