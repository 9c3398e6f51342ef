"""Environments extend others, and say once what they share."""

import json
from collections import defaultdict

import pytest
import yaml

from deephash_pipeline.cli.refusals import configuration_fault
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.project.environments import ExtendingConfigLoader, refuse_other_numbers
from deephash_pipeline.settings import CONFIG_LOADER_ARGS
from tests.configuration import CONF, ENVIRONMENTS, configured

FILES = {
    "base/globals.yml": "seed: 42\nnetwork: lenet\n",
    "base/parameters.yml": "name: ${globals:benchmark}\nstage: {epochs: 1, rate: 1}\n",
    "base/catalog.yml": "table: {type: pandas.CSVDataset, filepath: 'data/${globals:benchmark}/table.csv'}\n",
    "near/globals.yml": "extends: middle\nbenchmark: near\n",
    "near/parameters_stage.yml": "stage: {rate: 3}\n",
    "middle/globals.yml": "extends: far\nbenchmark: middle\nnetwork: resnet18\n",
    "middle/parameters_stage.yml": "stage: {rate: 2, decay: 2}\n",
    "far/globals.yml": "benchmark: far\nseed: 7\n",
    "far/parameters_stage.yml": "stage: {epochs: 9, rate: 9, decay: 9, name: '${globals:benchmark}'}\n",
    "far/catalog.yml": "images: {type: text.TextDataset, filepath: 'data/${globals:benchmark}.txt'}\n",
}


@pytest.fixture
def conf(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "conf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "conf"


def loader(conf, environment, **parameters):
    return ExtendingConfigLoader(conf, environment, parameters, **CONFIG_LOADER_ARGS)


def test_what_an_environment_extends_lies_between_the_base_and_its_own_files(conf):
    loaded = loader(conf, "near")
    assert loaded.extended == ("far", "middle")
    assert loaded["globals"] == {"seed": 7, "network": "resnet18", "benchmark": "near"}
    stage = {"epochs": 9, "rate": 3, "decay": 2, "name": "near"}
    assert loaded["parameters"] == {"name": "near", "stage": stage}


def test_entries_of_the_catalog_are_replaced_as_a_whole(conf):
    (conf / "near/catalog.yml").write_text("images: {type: pickle.PickleDataset}\n")
    catalog = loader(conf, "near")["catalog"]
    assert catalog["images"] == {"type": "pickle.PickleDataset"}
    assert catalog["table"]["filepath"] == "data/near/table.csv"


def test_an_environment_takes_out_what_those_that_it_extends_say(conf):
    (conf / "near/globals.yml").write_text("extends: middle\nbenchmark: near\nwithout: [stage.rate, stage.name]\n")
    (conf / "near/parameters_stage.yml").write_text("stage: {decay: 3}\n")
    loaded = loader(conf, "near")
    assert loaded["parameters"]["stage"] == {"epochs": 9, "rate": 1, "decay": 3}
    assert "without" not in loaded["globals"]
    (conf / "last").mkdir()
    (conf / "last/globals.yml").write_text("extends: near\nbenchmark: last\nwithout: [stage]\n")
    assert loader(conf, "last")["parameters"]["stage"] == {"epochs": 1, "rate": 1}
    (conf / "middle/globals.yml").write_text("extends: far\nbenchmark: middle\nwithout: [stage]\n")
    assert loader(conf, "middle")["parameters"]["stage"] == {"epochs": 1, "rate": 2, "decay": 2}


def test_parameters_of_a_command_win_over_all_environments(conf):
    stage = {"epochs": 5, "rate": 4, "decay": 2, "name": "near"}
    assert loader(conf, "near", stage={"rate": 4, "epochs": 5})["parameters"]["stage"] == stage


def test_an_environment_that_extends_none_is_kedros(conf):
    loaded = loader(conf, "far")
    assert loaded["parameters"]["stage"] == {"epochs": 9, "rate": 9, "decay": 9, "name": "far"}
    assert loaded.extended == loader(conf, "base").extended == ()


FAR, NEAR = "benchmark: far\n", FILES["near/globals.yml"]
NOWHERE, NO_LIST = "and there is no such environment: ", "give a list of dotted names, such as "
REFUSED = [
    *(("far", f"{FAR}extends: {name}", f"`extends: .*`, {NOWHERE}") for name in ("''", "nowhere", "3", "[middle]")),
    ("far", f"{FAR}extends: far", ".* makes a circle, near -> middle -> far -> far: take it out of one of them"),
    ("far", f"{FAR}extends: near", ".* makes a circle, near -> middle -> far -> near: take it out of one of them"),
    ("near", "extends: middle", "`extends: middle` would write into the folders of middle: add `benchmark: near`"),
    *(("near", f"{NEAR}without: {names}", f"`without: .*`: {NO_LIST}") for names in ("stage", "3", "", "[3]")),
    ("near", f"{NEAR}without: [stage.rate, stage.ratte]", "`without` names `stage.ratte`, which is not there: "),
    ("far", f"{FAR}sede: 7", "nothing reads `sede`: do you mean `seed`"),
    ("near", f"{NEAR}mine: {{epoch: 7}}", "nothing reads `mine.epoch`: do you mean `mine.epochs`"),
    ("near", f"{NEAR}3: x", "`3` is no text to YAML: write the name in quotes"),
]


@pytest.mark.parametrize(("environment", "text", "said"), REFUSED)
def test_globals_that_cannot_be_meant_are_refused_with_their_file(conf, environment, text, said):
    (conf / "near/parameters_mine.yml").write_text("mine: '${globals:mine.epochs, 3}'")
    (conf / environment / "globals.yml").write_text(text)
    with pytest.raises(InputError, match=rf"^conf/{environment}/globals\.yml: {said}"):
        loader(conf, "near")["parameters"]


def test_globals_may_be_of_a_file_s_own_and_files_that_nothing_reads_are_named(conf, monkeypatch, caplog):
    monkeypatch.chdir(conf.parent)
    (conf / "near/parameters_mine.yml").write_text("mine: '${globals:mine.epochs}'\n_shared: 3")
    (conf / "middle/globals.yml").write_text(f"{FILES['middle/globals.yml']}mine: {{epochs: 7}}")
    (conf / "local").mkdir()
    for name in ("local/parameters.yml", "far/param.yml", "middle/globals.yaml"):
        (conf / name).write_text("mine: 8")
        assert loader("conf", "near")["parameters"]["mine"] == 7
        assert f"{name} is not read: {'move it to conf/<name>/' if 'local' in name else 'name it '}" in caplog.text
    with pytest.raises(InputError, match=r"^unknown parameter `stage\._shared`: names that begin with _ are for"):
        loader(conf, "near", stage={"_shared": 3})


def test_yaml_that_cannot_be_read_is_named_in_what_an_environment_extends_too(conf, monkeypatch):
    monkeypatch.chdir(conf.parent)
    assert configuration_fault("near") is None
    (conf / "far/parameters_stage.yml").write_text("stage: {rate: 9\n")
    assert "conf/far/parameters_stage.yml" in str(configuration_fault("near"))


def test_no_two_files_of_conf_say_the_same():
    same = defaultdict(list)
    for path in CONF.rglob("*.yml"):
        same[json.dumps(yaml.safe_load(path.read_text()), sort_keys=True)].append(path.relative_to(CONF).as_posix())
    assert [names for names in same.values() if len(names) > 1] == []


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_benchmark_has_a_name_and_notes_of_its_own(environment):
    own = yaml.safe_load((CONF / environment / "globals.yml").read_text())
    assert own["benchmark"] == environment
    assert own.get("notes") or not configured(environment, "globals")["notes"]


@pytest.mark.parametrize(("written", "read"), [("042", 34), ("1:30", 90), ("[8, 010]", 8), ("-0_7", -7)])
def test_a_number_that_yaml_takes_for_another_is_refused_with_its_file(conf, written, read):
    (conf / "far/parameters_stage.yml").write_text(f"stage: {{epochs: {written}}}\n")
    with pytest.raises(InputError, match=rf"^conf/far/parameters_stage\.yml: .* would be read as {read}: "):
        loader(conf, "near")["parameters"]
    with pytest.raises(InputError, match="--params: that is no YAML: close quotes and brackets, or put "):
        refuse_other_numbers("'010", "--params")
