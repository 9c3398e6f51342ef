"""What ``deephash-pipeline parameters`` prints: the values in force, and the file that says each."""

import re

import pytest

from deephash_pipeline.common.parameters import flatten
from tests.configuration import CONF, configured


@pytest.fixture
def printed(command, monkeypatch):
    monkeypatch.chdir(CONF.parent)

    def call(*arguments):
        result = command("parameters", *arguments)
        assert result.exit_code == 0, result.output
        rows = (re.split(r" {2,}", line, maxsplit=2) for line in result.output.splitlines())
        return {name: (file, value) for name, file, value in rows}

    return call


def test_all_that_is_in_force_has_its_file(printed):
    rows = printed("--env=caltech101_tuned_unseen")
    assert list(rows) == list(flatten("", configured("caltech101_tuned_unseen", "parameters")))
    assert rows["protocol"] == ("conf/variants/caltech101_tuned_unseen.yml", '"unseen"')
    assert rows["data_ingestion.query_count"] == ("conf/caltech101/globals.yml", "1010")
    assert rows["fine_tuning.csq.training.epochs"] == ("conf/variants/caltech101_tuned_unseen.yml", "20")
    assert rows["fine_tuning.csq.training.learning_rate"] == ("conf/recipes/tuned_features.yml", "0.005")
    assert all((CONF.parent / file).is_file() for name, (file, _) in rows.items() if name != "experiment.benchmark")


def test_of_a_method_there_is_also_what_no_file_says(printed):
    of_ksh = printed("ksh", "--params=baseline_hashing.ksh.anchors=7")
    assert of_ksh["baseline_hashing.ksh.anchors"] == ("--params", "7")
    assert of_ksh["baseline_hashing.ksh.iterations"] == ("conf/digits/parameters.yml", "100")
    assert {file for name, (file, _) in of_ksh.items() if "labelled_samples" in name} == {"default of the code"}
    of_csq = printed("csq", "--env=mnist")
    assert of_csq["fine_tuning.csq.hash_layer.momentum"] == ("default of the code", "0.1")
    assert not [name for name in of_csq if not name.startswith(("fine_tuning.csq.", "experiment.", "protocol"))]
    assert printed("deephash_pretrained")["hash_layer_init.training.batch_size"] == ("conf/digits/parameters.yml", "64")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["kshh"], "unknown method `kshh`: do you mean `ksh`?"),
        (["--env=cifar"], "there is no environment `cifar`: conf/ has "),
        (["csq", "--params=fine_tuning.csq.training.epochs=-1"], "`fine_tuning.csq`: "),
        (["csq", "--params=fine_tuning.default.epochs=1"], "`fine_tuning.csq`: "),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(command, monkeypatch, arguments, said):
    monkeypatch.chdir(CONF.parent)
    result = command("parameters", *arguments)
    assert result.exit_code == 1
    assert said in result.output
    assert result.output.count("\n") == 1
