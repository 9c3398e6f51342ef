"""``--pipelines=evaluation`` evaluates the cells that have codes, and lists the others."""

import logging
from pathlib import Path
from typing import Any

import pytest
from kedro.framework.project import pipelines

from deephash_pipeline.cli.partial import codes_read, only_cells_that_are_there

OPTIONS: dict[str, Any] = {"pipelines": ["evaluation"], "env": None, "params": {}}


def remove(project: Path, pattern: str) -> None:
    for path in (project / "data/07_model_output/digits").glob(f"{pattern}/codes.npz*"):
        path.unlink()


def test_where_all_cells_are_there_all_are_evaluated(project: Path) -> None:
    assert project.is_dir()
    assert only_cells_that_are_there(OPTIONS) == OPTIONS


@pytest.mark.usefixtures("kept")
def test_after_a_run_at_one_code_length_its_cells_are_evaluated_and_joined(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for bits in (12, 16, 24, 48):
        remove(project, f"*/b{bits}")
    with caplog.at_level(logging.WARNING, logger="deephash_pipeline"):
        narrowed = only_cells_that_are_there(OPTIONS)
    assert narrowed == {**OPTIONS, "pipelines": ["full_at_32_bits"], "namespaces": ["evaluation"]}
    nodes = pipelines["full_at_32_bits"].filter(node_namespaces=["evaluation"]).nodes
    assert {"evaluation.itq.b32.measure", "evaluation.collect_metrics"} <= {node.name for node in nodes}
    assert f"{len(codes_read('full_at_32_bits'))} of {len(codes_read('evaluation'))} cells are evaluated" in caplog.text
    assert "b12 of bre, " in caplog.text
    assert "b32 of" not in caplog.text


@pytest.mark.usefixtures("kept")
def test_without_the_codes_of_one_cell_the_others_are_evaluated(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    remove(project, "itq/b12")
    narrowed = only_cells_that_are_there(OPTIONS)
    assert "without codes: b12 of itq" in caplog.text
    assert len(narrowed["namespaces"]) == len(codes_read("evaluation")) - 1
    assert "evaluation.itq.b12" not in narrowed["namespaces"]
    nodes = {node.name for node in pipelines["evaluation"].filter(node_namespaces=narrowed["namespaces"]).nodes}
    assert "evaluation.itq.b16.measure" in nodes
    assert "evaluation.collect_metrics" not in nodes


@pytest.mark.usefixtures("kept")
def test_without_any_codes_and_for_named_nodes_nothing_is_narrowed(project: Path) -> None:
    named = {**OPTIONS, "namespaces": ["evaluation.itq"]}
    assert only_cells_that_are_there(named) == named
    remove(project, "*/*")
    assert only_cells_that_are_there(OPTIONS) == OPTIONS
