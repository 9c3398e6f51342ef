"""What a run prints at its end."""

from pathlib import Path

import pytest

from deephash_pipeline.hooks import _where_to_look

PAGE = "data/08_reporting/mnist/report.html"


def test_a_clone_is_looked_at_by_make_and_another_project_by_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf" / "base").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    report, pipelines, runs = _where_to_look(PAGE, "mnist", make=True)
    assert report.endswith(f" {PAGE}")
    assert " kedro viz run --host=127.0.0.1 --env=mnist " in pipelines
    assert " mlflow server --backend-store-uri sqlite:///mlflow.db " in runs
    (tmp_path / "Makefile").touch()
    lines = list(_where_to_look(PAGE, "mnist", make=True))
    assert all(f"make {verb} ENV=mnist" in line for verb, line in zip(("report", "viz", "mlflow"), lines, strict=True))
