"""The tables out of made-up files of two benchmarks, one of them run in part, as `kedro run` writes them."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from kedro.framework.session import KedroSession
from kedro.framework.startup import bootstrap_project

from deephash_pipeline.images.descriptors.hand_crafted import DESCRIPTORS
from deephash_pipeline.pipelines.grid import METHODS, PAPER_METHODS, compared_cells
from deephash_pipeline.pipelines.paper_tables.nodes import write_paper_tables
from deephash_pipeline.project.policy import Policy, with_policy
from deephash_pipeline.reports.paper.published import FEATURE_CODE_LENGTHS
from deephash_pipeline.reports.paper.tables import FEATURE_METHODS, HAND_CRAFTED_FEATURES
from tests.project.datasets.kinds import csv_dataset, json_dataset

TABLES = ["map_of_all_methods", "hand_crafted_against_cnn"]
RUN = {
    ("mnist", "itq", 32): 0.91234,
    ("mnist", "deephash", 12): 0.99512,
    ("mnist", "one_of_c", 10): 0.98765,
    ("cifar10", "ksh", 48): 0.61234,
    ("digits", "ksh", 48): 0.31415,
    ("cifar10", "of_somebody_else", 48): 0.27182,
    ("cifar10_unseen", "ksh", 48): 0.45678,
    ("mnist", "bre", 32): 0.56789,
    ("kaggle_face", "one_of_c", 7): 0.65432,
}
PROTOCOLS = {("cifar10_unseen", "ksh"): "unseen", ("mnist", "bre"): "held_out", ("kaggle_face", "one_of_c"): "held_out"}


def write_cell(project, benchmark, method, code_length, score):
    bits = "bC" if method == "one_of_c" else f"b{code_length}"
    folder = project / "data/07_model_output" / benchmark / method / bits
    labels = {"method": method, "code_length": code_length}
    protocol = PROTOCOLS.get((benchmark, method), "paper")
    shown = protocol == "paper" and method != "of_somebody_else"
    sizes = {"queries": 100 if shown else 77, "database_size": 900, "chance_level": 0.1}
    json_dataset(str(folder / "metrics.json")).save(
        {**labels, "protocol": protocol, "mean_average_precision": score, **sizes}
    )


def run_with_what_is_there(project):
    """Run the pipeline; what is made up has no manifests."""
    with KedroSession.create(project, runtime_params=with_policy({}, Policy(stale_allowed=True))) as session:
        session.run(pipeline_names=["paper_tables"])


@pytest.fixture(scope="module")
def written(new_project):
    """Run the pipeline once; give the folder that it writes."""
    project = new_project("paper_tables")
    for (benchmark, method, code_length), score in RUN.items():
        write_cell(project, benchmark, method, code_length, score)
    hand_crafted = {"feature": "GIST", "method": "KSH", "code_length": 16, "measured": 0.2345}
    reporting = project / "data/08_reporting"
    csv_dataset(str(reporting / "cifar10/hand_crafted.csv")).save(pd.DataFrame([hand_crafted]))
    bootstrap_project(project)
    run_with_what_is_there(project)
    return project / "docs/results/paper"


def test_every_table_is_written_as_csv_and_markdown(written):
    files = {f"{name}.{kind}" for name in TABLES for kind in ("csv", "md")}
    files.add("classifier_baselines.csv")
    files |= {f"{name}.provenance.json" for name in files}
    assert {path.name for path in written.iterdir()} == files
    for path in written.iterdir():
        assert 100 < path.stat().st_size < 100_000, path


@pytest.mark.parametrize("name", TABLES)
def test_what_was_not_run_is_shown_as_not_run(written, name):
    assert "not run" in (written / f"{name}.md").read_text(encoding="utf-8").lower()
    assert "not run" in (written / f"{name}.csv").read_text(encoding="utf-8")


def test_measured_is_what_was_measured_and_nothing_else(written):
    table = pd.read_csv(written / "map_of_all_methods.csv", na_values="not run").dropna(subset="measured")
    benchmarks, methods = {"MNIST": "mnist", "CIFAR10": "cifar10"}, {"ITQ": "itq", "KSH": "ksh"}
    for row in table.to_dict("records"):
        method = methods.get(row["method"], "deephash")
        assert RUN[benchmarks[row["benchmark"]], method, row["code_length"]] == pytest.approx(row["measured"], abs=5e-5)
    assert len(table) == 3


def test_sizes_are_those_of_the_cells_that_are_shown(written):
    page = (written / "map_of_all_methods.md").read_text(encoding="utf-8")
    assert "100 queries, database" in page and "77 queries" not in page
    assert pd.read_csv(written / "classifier_baselines.csv")["benchmark"].tolist() == ["mnist"]


def test_the_stored_pages_are_those_that_the_pipeline_writes_beside_the_stored_values():
    stored = Path(__file__).parents[2] / "docs/results/paper"
    tables = {path.name: pd.read_csv(path) for path in stored.glob("*.csv")}
    written = write_paper_tables({}, {}, tables, {method: METHODS[method] for method in PAPER_METHODS})
    for name in TABLES:
        assert written[f"{name}_page"] == (stored / f"{name}.md").read_text(encoding="utf-8")


def test_features_of_other_runs_are_found(written):
    features = pd.read_csv(written / "hand_crafted_against_cnn.csv", na_values="not run").dropna(subset="measured")
    assert features[["feature", "method", "code_length", "measured"]].to_numpy().tolist() == [
        ["GIST", "KSH", 16, 0.2345]
    ]


def test_what_was_measured_is_kept_where_its_artefacts_are_gone_and_replaced_where_it_is_measured_again(
    written, tmp_path, monkeypatch
):
    project = shutil.copytree(written.parents[2], tmp_path / "clone")
    shutil.rmtree(project / "data/07_model_output")
    shutil.rmtree(project / "data/08_reporting")
    again = project / "docs/results/paper"
    monkeypatch.chdir(project)
    bootstrap_project(project)
    write_cell(project, "cifar10", "ksh", 48, 0.7)
    write_cell(project, "cifar10", "deephash", 24, 0.8)
    run_with_what_is_there(project)
    features = "hand_crafted_against_cnn.csv"
    assert (again / features).read_bytes() == (written / features).read_bytes()
    table = pd.read_csv(again / "map_of_all_methods.csv", na_values="not run").dropna(subset="measured")
    assert table.set_index(["method", "code_length"])["measured"].to_dict() == {
        ("DeepHash (fine-tuning)", 12): 0.9951,
        ("DeepHash (fine-tuning)", 24): 0.8,
        ("KSH", 48): 0.7,
        ("ITQ", 32): 0.9123,
    }
    assert "1-of-C code of the classifier, 10 bits: 0.9877" in (again / "map_of_all_methods.md").read_text("utf-8")


def test_hand_crafted_features_and_cells_are_those_that_their_pipeline_makes():
    assert set(HAND_CRAFTED_FEATURES.values()) <= set(DESCRIPTORS.values())
    cells = [(method, length) for method in FEATURE_METHODS for length in FEATURE_CODE_LENGTHS]
    assert [(cell.method, cell.bits) for cell in compared_cells()] == cells
