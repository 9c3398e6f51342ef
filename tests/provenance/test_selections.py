"""A selection says what is wanted; whether it is up to date is the same question for all of them."""

import pytest
from click.testing import CliRunner
from kedro.framework.project import pipelines

from deephash_pipeline.cli import run as command
from deephash_pipeline.cli.main import cli
from deephash_pipeline.project.freshness import nodes_to_run
from deephash_pipeline.project.hooks import ResultTable
from deephash_pipeline.provenance.manifest import manifest_path

METRICS = "data/07_model_output/digits/itq/b12/metrics.json"


@pytest.fixture
def runs(project, monkeypatch):
    """Give a command; return what it prints, and how many runs it came to."""
    assert project.is_dir()
    begun = []
    monkeypatch.setattr(command.kedro_run, "callback", lambda **options: begun.append(options))
    # What was made up holds no scores.
    monkeypatch.setattr(ResultTable, "after_pipeline_run", lambda *_, **options: None)

    def come_to(*options):
        begun.clear()
        result = CliRunner().invoke(cli, ["run", *options])
        assert result.exit_code == 0, result.output
        return len(begun)

    return come_to


SELECTIONS = [
    "--pipelines=full",
    "--pipelines=evaluation",
    "--pipelines=fine_tuning,evaluation",
    "--tags=evaluation",
    "--nodes=evaluation.itq.b12.measure",
    "--namespaces=itq",
    "--to-outputs=itq.b12.metrics",
    "--to-nodes=evaluation.itq.b12.measure",
    "--from-nodes=evaluation.itq.b12.measure",
    "--from-inputs=itq.b12.codes",
]


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("stale", [(), ("--stale=allow",)], ids=["refuse", "allow"])
def test_a_selection_of_what_is_up_to_date_runs_nothing(runs, selection, stale):
    assert runs(selection, *stale) == 0


@pytest.mark.parametrize("selection", SELECTIONS[1:5])
def test_by_force_it_runs_and_with_another_parameter_too(runs, selection):
    assert runs(selection, "--force") == 1
    assert runs(selection, "--params=protocol=cifar10_1") == 1


@pytest.mark.usefixtures("kept")
def test_of_a_selection_that_alone_runs_which_is_not_up_to_date(runs, project, catalog):
    assert nodes_to_run(pipelines["evaluation"], catalog, whole=False) == []
    (project / METRICS).unlink()
    assert nodes_to_run(pipelines["evaluation"], catalog, whole=False) == ["evaluation.itq.b12.measure"]
    assert runs("--pipelines=evaluation") == 1
    assert runs("--pipelines=evaluation", "--namespaces=ksh") == 0


@pytest.mark.usefixtures("kept")
def test_what_a_selection_need_not_read_may_be_gone(runs, project):
    codes = project / METRICS.replace("metrics.json", "codes.npz")
    codes.unlink()
    manifest_path(codes).unlink()
    assert runs("--pipelines=evaluation") == 0
