import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from kedro.framework.startup import bootstrap_project
from mlflow import MlflowClient

from deephash_pipeline.pipelines.grid import METHODS, PAPER_METHODS, cells
from deephash_pipeline.provenance.manifest import manifest_path
from tests.end_to_end.refused_runs import finished

GRID = list(cells(*PAPER_METHODS))
NAMES = [METHODS[method] for method in PAPER_METHODS]


def results(project):
    return project / "data" / "08_reporting" / "digits"


def tracked(project):
    """Parent runs, newest first, and child runs."""
    client = MlflowClient(f"sqlite:///{project / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("digits")
    found = list(client.search_runs([experiment.experiment_id]))
    return (
        [run for run in found if "mlflow.parentRunId" not in run.data.tags],
        [run for run in found if "mlflow.parentRunId" in run.data.tags],
    )


def test_the_run_ends_with_the_table_and_where_to_look_further(small_run, finished_project):
    lines = small_run.stdout.splitlines()
    assert any("Mean average precision on digits" in line for line in lines)
    table = pd.read_csv(results(finished_project) / "map.csv").set_index("method")
    for method in NAMES:
        values = table[[name.startswith(method) for name in table.index]].iloc[0]
        row = next(line for line in lines if line.strip("│ ").startswith(method))
        assert all(f"{value:.4f}" in row for value in values)
    report = (results(finished_project) / "report.html").read_text(encoding="utf-8")
    assert all(method in report for method in NAMES)
    for command in ("data/08_reporting/digits/report.html", "kedro viz run", "mlflow server"):
        assert any(command in line for line in lines)


def test_the_run_prints_no_warning(small_run):
    suspicious = [line for line in small_run.stdout.splitlines() if "warn" in line.lower() or "deprec" in line.lower()]
    assert suspicious == []


def test_every_cell_has_metrics_between_chance_and_perfection(finished_project):
    output = finished_project / "data" / "07_model_output" / "digits"
    for cell in GRID:
        metrics = json.loads((output / cell.namespace.replace(".", "/") / "metrics.json").read_text())
        assert metrics["method"] == cell.method
        assert metrics["chance_level"] < metrics["mean_average_precision"] <= 1
        assert metrics["chance_level"] < metrics["validation_mean_average_precision"] <= 1
        assert metrics["queries"] == 1000
        assert metrics["database_size"] == round(0.8 * 797)


def test_the_run_leaves_no_temporary_file_and_writes_nothing_outside_its_folders(finished_project):
    hidden = [path for path in (finished_project / "data").rglob(".*") if path.name != ".gitkeep"]
    assert hidden == []
    made = {path.name for path in finished_project.iterdir()}
    given = {"conf", "src", "pyproject.toml", ".telemetry"}
    # Kedro-Viz, where it is installed, makes a folder of its own.
    assert made - given - {".viz"} == {"data", "mlflow.db", "mlartifacts"}


def test_mlflow_holds_one_parent_and_a_child_for_each_cell(finished_project):
    parents, children = tracked(finished_project)
    assert len(parents) == 1
    parent = parents[0]
    assert parent.info.status == "FINISHED"
    assert parent.data.params["cnn_pretraining.training.epochs"] == "2"
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {parent.info.run_id}
    found = sorted((run.data.params["method"], run.data.params["code_length"]) for run in children)
    assert found == sorted((cell.method, str(cell.code_length or 10)) for cell in GRID)


@pytest.fixture
def codes_alone(finished_project, tmp_path):
    """A copy of the finished project with labels and codes, but without images, features, models and figures."""
    kept = shutil.ignore_patterns("images.npy", "0[13468]_*", "metrics.json", "*.csv", ".viz")
    return Path(shutil.copytree(finished_project, tmp_path / "codes alone", ignore=kept))


@pytest.mark.complete
def test_evaluation_runs_on_cached_codes_alone(finished_project, codes_alone, small_parameters, monkeypatch):
    before = tracked(codes_alone)
    bootstrap_project(codes_alone)
    monkeypatch.chdir(codes_alone)
    finished("--pipelines=evaluation", small_parameters)
    metrics = Path("data/07_model_output/digits/metrics.json")
    assert (codes_alone / metrics).read_bytes() == (finished_project / metrics).read_bytes()
    after = tracked(codes_alone)
    assert len(after[0]) == len(before[0]) + 1
    # With the same metrics as before a cell has one child: a search for the best mAP gives it once.
    assert len(after[1]) == len(before[1])
    known = {run.info.run_id for run in before[0]}
    (again,) = (run for run in after[0] if run.info.run_id not in known)
    assert sum(name.startswith("map/") for name in again.data.metrics) == len(GRID)


def test_the_same_seed_gives_the_same_codes_when_a_cell_is_trained_alone(
    finished_project, small_parameters, tmp_path, monkeypatch
):
    project = Path(shutil.copytree(finished_project, tmp_path / "again", ignore=shutil.ignore_patterns("b12")))
    layer = Path("data/06_models/digits/deephash_pretrained/b12/hash_layer.safetensors")
    codes = Path("data/07_model_output/digits/deephash/b12/codes.npz")
    (project / layer).parent.mkdir()
    for file in (layer, manifest_path(layer)):
        shutil.copy(finished_project / file, project / file)
    bootstrap_project(project)
    monkeypatch.chdir(project)
    cell = ("--pipelines=fine_tuning", "--namespaces=fine_tuning.deephash.b12")
    finished(*cell, small_parameters)
    assert (project / codes).read_bytes() == (finished_project / codes).read_bytes()
