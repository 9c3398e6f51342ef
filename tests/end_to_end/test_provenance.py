"""What is stale never becomes a number: the ways in which it did, tried on a finished run from the command line."""

import re
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from kedro.framework.startup import bootstrap_project

from deephash_pipeline.cli import guarded as cli
from deephash_pipeline.search.images import ImageIndex
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


@pytest.mark.usefixtures("copy")
def test_a_cell_is_explained_from_raw_images_to_map(small_parameters):
    result = CliRunner().invoke(cli.explain, ("deephash.b48", small_parameters))
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].startswith("raw_images ")
    assert lines[-1].startswith("deephash.b48.metrics: mean average precision 0.")
    nodes = [line.partition(":")[0] for line in lines if not line.startswith(" ")]
    for node in (
        "data_ingestion.split_images",
        "cnn_pretraining.pre_train",
        "hash_layer_init.deephash_pretrained.b48.initialise",
        "fine_tuning.deephash.b48.fine_tune",
        "fine_tuning.deephash.b48.encode",
        "evaluation.deephash.b48.measure",
    ):
        assert node in nodes
    assert "experiment.seed=42" in result.output
    assert "stale" not in result.output


def test_an_index_of_a_cell_is_searched_explained_and_known_to_be_stale_or_damaged(copy, small_parameters):
    finished("--pipelines=indexing", "--namespaces=itq.b12,deephash.b48", small_parameters)
    places = [copy / f"data/07_model_output/digits/{cell}/index" for cell in ("itq/b12", "deephash/b48")]
    for folder in places:
        with ImageIndex.open(folder, read_only=True, device="cpu") as index:
            (found,) = index.index.items([list(index)[3]])
            picture = index.path_of(found.metadata)
            assert index.search(picture, 1).distances.tolist() == [[0]]
            assert index.hasher.encode(picture)[0].tolist() == found.code.tolist()
    fresh = CliRunner().invoke(cli.explain, ("itq.b12.index", small_parameters)).output
    other = f"{small_parameters},baseline_hashing.itq.iterations=7"
    stale = CliRunner().invoke(cli.explain, ("itq.b12.index", other)).output
    (segment,) = (places[0] / "segments").iterdir()
    content = segment.read_bytes()
    segment.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    damaged = CliRunner().invoke(cli.status, (small_parameters,)).output
    for folder in places:
        shutil.rmtree(folder)
    assert "indexing.itq.b12.make_index: itq.b12.encoder, trunk_weights, itq.b12.codes" in fresh
    assert re.search(r"    itq.b12.index \w{8}\n", fresh)
    assert re.search(
        r"    itq.b12.index \w{8} \(stale: was made from `itq.b12.encoder`, .* 50, this run has 7\)", stale
    )
    assert "damaged: `itq.b12.index` is damaged" in damaged


@pytest.mark.usefixtures("copy")
def test_what_is_not_there_cannot_be_explained():
    result = CliRunner().invoke(cli.explain, ("deephash.b49",))
    assert result.exit_code == 1
    assert "unknown `deephash.b49`" in result.output
