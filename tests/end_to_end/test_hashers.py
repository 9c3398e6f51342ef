"""Every cell of a run can be taken away as one file, which gives the codes that the run stored."""

import numpy as np
import pytest
from click.testing import CliRunner
from kedro.framework.startup import bootstrap_project

from deephash_pipeline import ImageHasher
from deephash_pipeline.cli.main import cli
from deephash_pipeline.cli.project import run_catalog
from deephash_pipeline.pipelines.grid import PAPER_METHODS, cells
from deephash_pipeline.pipelines.shared.hashers import hasher_of_cell

CELLS = list(cells(*PAPER_METHODS, code_lengths=[12]))


@pytest.fixture(scope="module")
def catalog(finished_project):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(finished_project)
        bootstrap_project(finished_project)
        yield run_catalog("digits")


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: str(cell.namespace))
def test_the_hasher_of_a_cell_gives_the_codes_that_the_run_stored(catalog, cell, tmp_path):
    hasher_of_cell(catalog, cell).save(tmp_path / "hasher.safetensors")
    loaded = ImageHasher.load(tmp_path / "hasher.safetensors")
    codes = catalog.load(f"{cell.namespace}.codes")
    np.testing.assert_array_equal(loaded.encode(catalog.load("query_images")), codes.query)
    np.testing.assert_array_equal(loaded.encode(catalog.load("training_images")), codes.database)
    assert (loaded.description.method, loaded.code_length) == (cell.method, codes.code_length)
    assert loaded.description.benchmark == "digits"


def test_the_command_writes_it(finished_project, tmp_path, monkeypatch):
    monkeypatch.chdir(finished_project)
    bootstrap_project(finished_project)
    file = tmp_path / "itq48.safetensors"
    result = CliRunner().invoke(cli, ["hasher", "digits", "itq.b48", "-o", str(file)], catch_exceptions=False)
    assert "ImageHasher(itq, 48 bits, lenet, digits)" in result.output
    assert " images of digits in 10 classes, 28 x 28 pixels in grey, seed " in result.output
    assert ImageHasher.load(file).encode(np.zeros((2, 28, 28), np.uint8)).shape == (2, 6)


def test_the_folder_for_the_hub_has_the_metrics_and_the_command_of_the_run(
    finished_project, catalog, tmp_path, monkeypatch
):
    monkeypatch.chdir(finished_project)
    bootstrap_project(finished_project)
    folder = tmp_path / "itq48"
    CliRunner().invoke(cli, ["export-huggingface", "digits", "itq.b48", "-o", str(folder)], catch_exceptions=False)
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"| mean_average_precision | {catalog.load('itq.b48.metrics')['mean_average_precision']} |" in card
    assert "run --pipelines=full" in card
    assert "| experiment.seed | 42 |" in card
    codes = ImageHasher.load(folder).encode(catalog.load("query_images"))
    np.testing.assert_array_equal(codes, catalog.load("itq.b48.codes").query)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mnists", "itq.b48"], "unknown benchmark `mnists`"),
        (["base", "itq.b48"], "unknown benchmark `base`"),
        (["digits", "itq.b13"], "unknown cell `itq.b13`: there are itq.b12, itq.b16"),
        (["digits", "itk.b12"], "unknown cell `itk.b12`: methods are lsh"),
        (["mnist", "itq.b48"], "itq.b48 of mnist has not been run"),
        (["digits", "itq.b64"], "`kedro run --pipelines=long_codes --to-outputs=itq.b64.encoder --env=digits` in "),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(finished_project, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(finished_project)
    bootstrap_project(finished_project)
    result = CliRunner().invoke(cli, ["hasher", *arguments, "-o", str(tmp_path / "x")])
    assert result.exit_code == 1
    assert message in result.output
    assert len(result.output.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.complete
def test_a_new_project_runs(tmp_path, kedro, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["new", "mine"]).exit_code == 0
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {"conf", "data", ".telemetry", "pyproject.toml"}
    finished = kedro(tmp_path / "mine", "run", "--pipelines=data_ingestion")
    assert finished.returncode == 0, finished.stdout
    again = CliRunner().invoke(cli, ["new", "mine"])
    assert again.exit_code == 1
    assert "is not empty" in again.output
