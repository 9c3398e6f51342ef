"""Options of a run that name what is not there end in one line with exit code 1, and nothing is written."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from kedro.framework.project import pipelines
from kedro.io import DatasetError
from kedro.pipeline import Pipeline, node

from deephash_pipeline.cli import project_faults, refusals
from deephash_pipeline.cli.main import cli
from deephash_pipeline.cli.provenance import open_catalog
from deephash_pipeline.common.devices import resolve_device
from deephash_pipeline.common.errors import InputError, chain_of
from deephash_pipeline.project.checks import SoundRun

HUGE = "9999999999999999999999"

NAMES = [
    ("--nodes=evaluation.itq.b48.measur", "measur", "registry describe"),
    ("--to-nodes=data_ingestion.split_images,foo", "foo", "registry describe"),
    ("--from-inputs=itq.b49.codes", "itq.b49.codes", "catalog describe-datasets"),
    ("--from-nodes=reporting.write_report --to-nodes=data_ingestion.split_images", "no nodes", "write_report"),
    ("--pipelines=reporting --tags=evaluation", "no nodes", "tags=evaluation"),
    ("--pipelines=full --namespaces=lsh.b32 --tags=fine_tuning", "no nodes", "namespaces=baseline_hashing.lsh.b32"),
    ("--only-missing-outputs", "would leave what is stale", "leave it out"),
    ("--load-versions=itq.b48.codes:2026-01-01T00.00.00.000Z", "a version of `itq.b48.codes`", "leave it out"),
    ("--pipeline=full --pipelines=evaluation", "--pipeline and --pipelines are one option", "in --pipelines"),
    ("--runner=Foo", "unknown runner `Foo`", "SequentialRunner"),
    ("--pipelines=evaluation,foo", "unknown pipeline `foo`", "full_at_32_bits"),
    ("--pipeline=foo", "unknown pipeline `foo`", "full_at_32_bits"),
    ("--pipelines=evaluation,field", "pipelines evaluation, field join different cells", "run each by itself"),
    ("--namespaces=itq,foo", "unknown namespace `foo`", "itq.b48"),
    ("--pipelines=reporting --namespaces=itq.b48", "unknown namespace `itq.b48`", "a stage"),
    ("--env=foo", "there is no environment `foo`", "conf/"),
    ("--env=", "--env is empty", "conf/"),
    ("--pipelines=", "--pipelines is empty", "leave it out"),
    ("--runner-params=foo=1", "`foo`", "workers"),
    ("--runner-params=workers=abc", "workers: ", "'abc'"),
    ("--runner-params=workers=2.5", "workers: ", "integer"),
    ("--runner-params=on_error=foo", "on_error: ", "'stop'"),
]


@pytest.mark.parametrize(("arguments", "named", "remedy"), NAMES)
def test_what_is_not_there_is_named_with_what_is(refused, arguments, named, remedy):
    error = refused(*arguments.split())
    assert named in error
    assert remedy in error


PARAMETERS = [
    ("experiment.device=mps", "`mps`"),
    ("experiment.benchmark=mnist", "the benchmark is `mnist`"),
    (f"cnn_pretraining.training.epochs={HUGE}", "cnn_pretraining.training.epochs"),
    ("protocol=cifar10", "protocol is 'cifar10': choose among paper"),
    ("colour=red", "unknown parameter `colour`"),
    ("baseline_hashing.itq.iterations=true", "iterations is true, and a number is wanted"),
    ("fine_tuning=5", "`fine_tuning` is a group: name a value in it, such as fine_tuning."),
    ("cells.itq.b48=3", "unknown parameter `cells`"),
    ("experiment.seed=042", "`042` would be read as 34"),
    ("experiment.seed=1,experiment.seed=2", "`experiment.seed` is there twice: give one value"),
    ("hand_crafted.sift_bag.cell_sizes=[4,8]", "write a list into conf/<environment>/parameters.yml"),
    ("reporting.notes=!!python/name:os.system", "no plain YAML: leave tags out"),
    ("experiment.network=foo", "lenet"),
    ("cnn_pretraining.training.epoch=3", "Parameter 'cnn_pretraining': training.epoch: Extra inputs"),
    ("fine_tuning.deephash.loss.heat=1", "loss.exponentiated.heat"),
    ("fine_tuning.dpsh.loss.name=dsph", "'greedy_hash'"),
    ("fine_tuning.dpsh.loss.name=csq", "would train the loss csq: write `loss: {name: dpsh}`"),
    ("baseline_hashing.hamming.anchors=300", "hamming"),
    ("fine_tuning.fine_tunning.training.epochs=3", "nothing reads it"),
]


LOOKING = [
    ("status --pipelines=nope", "unknown pipeline `nope`: choose among data_ingestion"),
    ("status --params=experiment.device=tpu", "unknown device `tpu`"),
]


def reader_of(parameter):
    """Name a pipeline that reads a parameter, the smallest there is."""
    group = parameter.partition("=")[0].partition(".")[0]
    return group if group in pipelines else "data_ingestion"


@pytest.mark.parametrize(("parameter", "named"), PARAMETERS)
def test_a_parameter_that_cannot_be_is_named(refused, parameter, named):
    assert named in refused(f"--pipelines={reader_of(parameter)}", f"--params={parameter}")


def test_a_method_without_a_block_of_parameters_is_named(here):
    pipeline = Pipeline([node(len, "params:fine_tuning.classic", "length")])
    with pytest.raises(InputError, match=r"no parameters `fine_tuning\.classic`: write them in conf/base"):
        SoundRun().before_pipeline_run({"project_path": str(here)}, pipeline, open_catalog(None))


@pytest.mark.parametrize(("arguments", "named"), LOOKING)
def test_commands_that_look_check_what_a_run_checks(here, arguments, named):
    name, *options = arguments.split()
    result = CliRunner().invoke(cli, [name, *options])
    assert (result.exit_code, result.output.count("\n")) == (1, 1), result.output
    assert named in result.output


def test_a_project_that_mlflow_could_not_open_is_not_made(tmp_path):
    result = CliRunner().invoke(cli, ["new", str(tmp_path / "a?b")])
    assert result.exit_code == 1
    assert "has a `?`" in result.output
    assert not list(tmp_path.iterdir())


def test_where_a_run_is_started_below_its_project_makes_no_difference(refused, here, monkeypatch):
    monkeypatch.chdir(here / "conf" / "base")
    assert "'foo'" in refused("--nodes=foo")
    assert Path.cwd() == here


@pytest.mark.parametrize("text", ["run: [\n", "- a\n", "env: digits\n"])
def test_a_file_of_options_that_has_none_is_named_with_what_it_should_have(refused, tmp_path, text):
    (tmp_path / "c.yml").write_text(text)
    error = refused(f"--config={tmp_path}/c.yml")
    assert f"{tmp_path}/c.yml" in error and "`run:`" in error


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{params: {experiment: {seed: 042}}}", "`042` would be read as 34"),
        ("{pipeline_names: full}", "a run has no option `pipeline_names`: choose among"),
        ("{workers: 0}", "0 is not in the range"),
        ("{stale: allow, on_error: stop, nodes: foo}", "a run has no option `nodes`"),
        ("{stale: allow, on_error: stop, node_names: foo}", "'foo'"),
    ],
)
def test_a_file_of_options_is_checked_as_options_are(here, tmp_path, text, said):
    (tmp_path / "c.yml").write_text(f"run: {text}")
    result = CliRunner().invoke(cli, ["run", f"--config={tmp_path}/c.yml"])
    assert result.exit_code != 0 and said in result.output


@pytest.mark.parametrize("character", ["?", "%"])
def test_a_path_that_mlflow_cannot_open_is_refused(tmp_path, monkeypatch, character):
    folder = tmp_path / f"what{character}"
    (folder / "conf" / "base").mkdir(parents=True)
    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match=rf"has a `\{character}`.*rename the folder"):
        project_faults.enter_project()


@pytest.mark.parametrize("device", ["mps", "xpu", "meta", "tpu", "cuda:99", "CPU", "", "cpu:-1", "hpu:0", "vulkan"])
def test_a_device_that_is_not_there_or_not_supported_is_refused(device):
    with pytest.raises(InputError, match="use auto"):
        resolve_device(device)


def test_of_errors_within_each_other_the_one_that_says_what_to_do_is_shown():
    error = DatasetError("failed while loading")
    error.__cause__ = InputError("mend the file")
    assert str(refusals.known_fault(chain_of(error))) == "mend the file"
