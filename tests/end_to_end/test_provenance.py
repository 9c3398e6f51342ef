"""What is stale never becomes a number: the ways in which it did, tried on a finished run from the command line."""

import re
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from kedro.framework.startup import bootstrap_project

from deephash_pipeline.cli.main import cli
from deephash_pipeline.photographs import ImageIndex
from tests.end_to_end.refused_runs import finished, refused, stored


@pytest.fixture(scope="module")
def copied(finished_project, tmp_path_factory):
    """A copy of the finished project, for the tests of this file."""
    return Path(shutil.copytree(finished_project, tmp_path_factory.mktemp("provenance") / "project"))


@pytest.fixture
def copy(copied, monkeypatch):
    bootstrap_project(copied)
    monkeypatch.chdir(copied)
    return copied


@pytest.mark.usefixtures("copy")
def test_a_report_for_another_seed_and_network_is_refused(small_parameters):
    other = f"{small_parameters},experiment.seed=7,experiment.network=cifar10_full"
    error = refused("--pipelines=reporting", other)
    assert "was made with seed 42, this run has 7" in error
    assert "kedro run --pipelines=full" in error


def test_everything_is_as_it_was_after_a_second_run_of_the_whole(copy, small_parameters):
    before = stored(copy)
    begun = time.monotonic()
    result = finished("--pipelines=full", small_parameters)
    assert stored(copy) == before
    assert "Mean average precision on digits" in result.output
    assert time.monotonic() - begun < 60


def test_a_report_that_used_what_is_stale_says_so(copy, small_parameters):
    report = copy / "data/08_reporting/digits/report.html"
    kept = {path: path.read_bytes() for path in (copy / "data/08_reporting/digits").iterdir()}
    finished("--pipelines=reporting", "--stale=allow", f"{small_parameters},experiment.seed=7")
    text = report.read_text(encoding="utf-8")
    assert "Stale artefacts were used for this report" in text
    assert "was made with seed 42, this run has 7" in text
    shown = dict(re.findall(r"<th scope=\"row\">(.*?)</th><td>(.*?)</td>", text))
    assert (shown["Seed"], shown["Network"]) == ("42", "lenet")
    for path, content in kept.items():
        path.write_bytes(content)


def test_an_index_of_a_cell_is_searched_and_known_to_be_stale_or_damaged(copy, small_parameters):
    finished("--pipelines=indexing", "--namespaces=itq.b12,deephash.b48", small_parameters)
    places = [copy / f"data/07_model_output/digits/{cell}/index" for cell in ("itq/b12", "deephash/b48")]
    for folder in places:
        with ImageIndex.open(folder, read_only=True, device="cpu") as index:
            (found,) = index.index.items([list(index)[3]])
            picture = index.path_of(found.metadata)
            assert index.search(picture, 1).distances.tolist() == [[0]]
            assert index.hasher.encode(picture)[0].tolist() == found.code.tolist()
    fresh = CliRunner().invoke(cli, ("status", small_parameters)).output
    other = f"{small_parameters},baseline_hashing.itq.iterations=7"
    stale = CliRunner().invoke(cli, ("status", other)).output
    (segment,) = (places[0] / "segments").iterdir()
    content = segment.read_bytes()
    segment.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    damaged = CliRunner().invoke(cli, ("status", small_parameters)).output
    for folder in places:
        shutil.rmtree(folder)
    assert re.fullmatch(r"\d+ fresh\n", fresh)
    assert re.search(r"stale: `itq.b12.encoder` \(and \d+ more\) was made with .*iterations 50, this run has 7", stale)
    assert re.search(r"\d+ stale", stale)
    assert "damaged: `itq.b12.index` is damaged" in damaged
