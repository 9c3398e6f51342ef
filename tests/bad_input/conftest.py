"""A project without data, in which a run that comes to its nodes fails the test."""

import pytest
from click.testing import CliRunner
from kedro.framework.startup import bootstrap_project
from kedro.runner import AbstractRunner

from deephash_pipeline.cli.main import cli
from deephash_pipeline.project.tracking import store
from tests.conftest import copied_project


@pytest.fixture(scope="session")
def empty_project(tmp_path_factory):
    return copied_project(tmp_path_factory.mktemp("bad_input") / "project")


@pytest.fixture
def here(empty_project, monkeypatch):
    """The project as the working directory, which no run may come so far as to write to."""
    bootstrap_project(empty_project)
    monkeypatch.chdir(empty_project)

    def come_too_far(*_arguments, **_options):
        raise AssertionError("the run came to its nodes")

    for runner in subclasses(AbstractRunner):
        monkeypatch.setattr(runner, "run", come_too_far)
    monkeypatch.setattr(store, "MlflowStore", come_too_far)
    return empty_project


def subclasses(kind):
    """All classes below one."""
    for below in kind.__subclasses__():
        yield below
        yield from subclasses(below)


@pytest.fixture
def refused(here):
    """Give the command of a run, expect one line and exit code 1, and return the line."""
    return lambda *arguments: refusal(here, *arguments)


def refusal(project, *arguments):
    """Give the command of a run, expect one line, exit code 1 and no file, and return the line."""
    before = everything(project.parent)
    result = CliRunner().invoke(cli, ["run", *arguments])
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 1, result.output
    lines = result.output.splitlines()
    assert len(lines) == 1, result.output
    assert lines[0].startswith("Error: ")
    assert everything(project.parent) == before
    return lines[0]


def everything(folder):
    """All files below a folder, and when they were written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
