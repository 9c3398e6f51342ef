"""Environments share recipes, extend one other, and say once what they share."""

import json
from collections import defaultdict

import pytest
import yaml

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.project.environments import LayeredConfigLoader, environments
from deephash_pipeline.project.origins import origins
from deephash_pipeline.project.other_numbers import refuse_other_numbers
from deephash_pipeline.project.policy import Policy, with_policy
from deephash_pipeline.settings import CONFIG_LOADER_ARGS
from tests.configuration import CONF, ENVIRONMENTS, configured

FILES = {
    "base/globals.yml": "seed: 42\nnetwork: lenet\n",
    "base/parameters.yml": "name: ${globals:benchmark}\nstage: {epochs: 1, rate: 1}\n",
    "base/catalog.yml": "table: {type: pandas.CSVDataset, filepath: 'data/${globals:benchmark}/table.csv'}\n",
    "far/globals.yml": "seed: 7\nrecipe: large\n",
    "far/parameters_stage.yml": "stage: {rate: 9, name: '${globals:benchmark}'}\n",
    "far/catalog.yml": "images: {type: text.TextDataset, filepath: 'data/${globals:benchmark}.txt'}\n",
    "recipes/large.yml": "globals: {seed: 6, network: resnet18}\nstage: {epochs: 8, rate: 8, decay: 8}\n",
    "recipes/quick.yml": "stage: {decay: 3}\n",
    "near/globals.yml": "extends: far\nrecipe: quick\n",
    "near/parameters_stage.yml": "stage: {rate: 2}\n",
    "variants/one.yml": "globals: {extends: far, recipe: quick}\nstage: {rate: 2}\n",
}


@pytest.fixture
def conf(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "conf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "conf"


def loader(conf, environment, **parameters):
    return LayeredConfigLoader(conf, environment, parameters, **CONFIG_LOADER_ARGS)


@pytest.mark.parametrize(("environment", "own"), [("near", "near"), ("one", "variants/one")])
def test_a_recipe_lies_below_what_names_it_and_what_is_extended_below_both(conf, environment, own):
    loaded = loader(conf, environment)
    assert loaded.layers == ("base", "recipes/large", "far", "recipes/quick", own)
    assert loaded["globals"] == {"seed": 7, "network": "resnet18", "benchmark": environment, "seed_folder": ""}
    stage = {"epochs": 8, "rate": 2, "decay": 3, "name": environment}
    assert loaded["parameters"] == {"name": environment, "stage": stage}
    assert loaded["catalog"]["images"]["filepath"] == f"data/{environment}.txt"


def test_environments_are_folders_and_files_of_the_folder_of_variants(conf):
    (conf / "local").mkdir()
    (conf / ".git").mkdir()
    assert environments(conf) == ["far", "near", "one"]


def test_entries_of_the_catalog_are_replaced_as_a_whole(conf):
    (conf / "near/catalog.yml").write_text("images: {type: pickle.PickleDataset}\n")
    catalog = loader(conf, "near")["catalog"]
    assert catalog["images"] == {"type": "pickle.PickleDataset"}
    assert catalog["table"]["filepath"] == "data/near/table.csv"


def test_parameters_of_a_command_win_over_all_environments(conf):
    stage = {"epochs": 5, "rate": 4, "decay": 3, "name": "one"}
    assert loader(conf, "one", stage={"rate": 4, "epochs": 5})["parameters"]["stage"] == stage


def test_an_environment_that_extends_none_is_kedros_with_its_recipe(conf):
    loaded = loader(conf, "far")
    assert loaded["parameters"]["stage"] == {"epochs": 8, "rate": 9, "decay": 8, "name": "far"}
    assert loader(conf, "base").layers == ("base",)


def test_what_a_block_does_not_say_is_that_of_the_default_of_its_group_wherever_it_is_said(conf):
    (conf / "base/parameters_losses.yml").write_text(
        "losses: {default: {rate: 1, net: {size: 1}}, a: {}, b: {rate: 5}}"
    )
    (conf / "far/parameters_losses.yml").write_text(
        "losses: {default: {rate: 2, net: {depth: 2}}, c: {net: {size: 3}}}"
    )
    given = loader(conf, "near", losses={"default": {"net": {"depth": 9}}})
    of_a = {"rate": 2, "net": {"size": 1, "depth": 9}}
    of_c = {"rate": 2, "net": {"size": 3, "depth": 9}}
    assert given["parameters"]["losses"] == {"a": of_a, "b": {**of_a, "rate": 5}, "c": of_c}
    found = origins(given)
    assert found["losses.b.rate"] == (5, "conf/base/parameters_losses.yml")
    assert found["losses.a.rate"] == (2, "conf/far/parameters_losses.yml")
    assert found["losses.c.net.depth"] == (9, "--params")


def test_every_parameter_has_the_last_file_that_says_it(conf):
    (conf / "base/parameters_all.yml").write_text("all: {seed: '${globals:seed}', given: '${globals:given}'}\n")
    (conf / "base/globals.yml").write_text("seed: 42\nnetwork: lenet\ngiven: {a: 1, b: 2}\n")
    (conf / "variants/one.yml").write_text("globals: {extends: far, given: {b: 3}}\n")
    assert {name: file for name, (_, file) in origins(loader(conf, "one", stage={"decay": 4})).items()} == {
        "name": "the name of the environment",
        "stage.epochs": "conf/recipes/large.yml",
        "stage.rate": "conf/far/parameters_stage.yml",
        "stage.decay": "--params",
        "stage.name": "the name of the environment",
        "all.seed": "conf/far/globals.yml",
        "all.given.a": "conf/base/globals.yml",
        "all.given.b": "conf/variants/one.yml",
    }


NEAR, FAR = FILES["near/globals.yml"], FILES["far/globals.yml"]
NOWHERE, NO_FILE = (
    "and there is no such environment: name a folder",
    "and there is no such file: name one of conf/recipes",
)
REFUSED = [
    *(
        ("near/globals", f"extends: {name}", f"`extends: .*`, {NOWHERE}")
        for name in ("''", "nowhere", "3", "[far]", "one")
    ),
    (
        "far/globals",
        "extends: near",
        "`extends: near`, which extends far: extend that, and put what is shared into a re",
    ),
    ("near/globals", "extends: near", "`extends: near`, which extends near: extend that, "),
    *(("near/globals", f"{NEAR}recipe: {name}", f"`recipe: .*`, {NO_FILE}") for name in ("''", "3", "[large]", "one")),
    ("far/globals", f"{FAR}sede: 7", "nothing reads `sede`: do you mean `seed`"),
    ("near/globals", f"{NEAR}mine: {{epoch: 7}}", "nothing reads `mine.epoch`: do you mean `mine.epochs`"),
    ("recipes/quick", "globals: {sede: 7}", "nothing reads `sede`: do you mean `seed`"),
    (
        "near/globals",
        f"{NEAR}stage: {{epochs: 7}}",
        "nothing reads `stage`: `stage` is a group of parameters: write it into",
    ),
    ("near/globals", f"{NEAR}3: x", "`3` is no text to YAML: write the name in quotes"),
]


@pytest.mark.parametrize(("file", "text", "said"), REFUSED)
def test_globals_that_cannot_be_meant_are_refused_with_their_file(conf, file, text, said):
    (conf / "near/parameters_other.yml").write_text("other: '${globals:mine.epochs, 3}'")
    text = text.replace("recipe: quick\nrecipe", "recipe")
    (conf / f"{file}.yml").write_text(text)
    with pytest.raises(InputError, match=rf"^conf/{file}\.yml: {said}"):
        loader(conf, "far" if file.startswith("far") else "near")["parameters"]


def test_globals_may_be_of_a_file_s_own_and_files_that_nothing_reads_are_named(conf, monkeypatch, caplog):
    monkeypatch.chdir(conf.parent)
    (conf / "near/parameters_mine.yml").write_text("mine: '${globals:mine.epochs}'\n_shared: 3")
    (conf / "far/globals.yml").write_text(f"{FAR}mine: {{epochs: 7}}")
    (conf / "local").mkdir()
    for name in ("local/parameters.yml", "far/param.yml", "far/globals.yaml"):
        (conf / name).write_text("mine: 8")
        assert loader("conf", "near")["parameters"]["mine"] == 7
        assert f"{name} is not read: {'move it to conf/<name>/' if 'local' in name else 'name it '}" in caplog.text
    with pytest.raises(InputError, match=r"^unknown parameter `stage\._shared`: names that begin with _ are for"):
        loader(conf, "near", stage={"_shared": 3})


def test_yaml_that_cannot_be_read_is_named_in_what_an_environment_extends_too(conf, monkeypatch):
    monkeypatch.chdir(conf.parent)
    for name in ("far/parameters_stage.yml", "recipes/large.yml", "recipes/quick.yml", "variants/one.yml"):
        assert loader("conf", "one")["parameters"]
        (conf / name).write_text("stage: {rate: 9\n")
        with pytest.raises(InputError, match=f"conf/{name} cannot be used"):
            loader("conf", "one")["parameters"]
        (conf / name).write_text(FILES[name])


def test_no_two_files_of_conf_say_the_same():
    same = defaultdict(list)
    for path in CONF.rglob("*.yml"):
        same[json.dumps(yaml.safe_load(path.read_text()), sort_keys=True)].append(path.relative_to(CONF).as_posix())
    assert [names for names in same.values() if len(names) > 1] == []


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_benchmark_has_a_name_and_notes_of_its_own(environment):
    folder = CONF / environment / "globals.yml"
    own = yaml.safe_load((folder if folder.exists() else CONF / f"variants/{environment}.yml").read_text())
    assert configured(environment, "globals")["benchmark"] == environment
    assert own.get("globals", own)["notes"]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_between_an_environment_and_the_base_is_one_other_and_of_caltech_and_sun_none_of_cifar(environment):
    layers = LayeredConfigLoader(CONF, environment, **CONFIG_LOADER_ARGS).layers
    assert "cifar10" not in layers or not environment.startswith(("caltech", "sun", "photographs"))
    assert len([layer for layer in layers if not layer.startswith("recipes/")]) <= 3


@pytest.mark.parametrize(("written", "read"), [("042", 34), ("1:30", 90), ("[8, 010]", 8), ("-0_7", -7)])
def test_a_number_that_yaml_takes_for_another_is_refused_with_its_file(conf, written, read):
    (conf / "far/parameters_stage.yml").write_text(f"stage: {{epochs: {written}}}\n")
    with pytest.raises(InputError, match=rf"^conf/far/parameters_stage\.yml: .* would be read as {read}: "):
        loader(conf, "near")["parameters"]
    with pytest.raises(InputError, match="--params: that is no YAML: close quotes and brackets, or put "):
        refuse_other_numbers("'010", "--params")


# Which of several seeds.


@pytest.mark.parametrize(("replicate", "folder"), [(1, ""), (2, "r2/"), (12, "r12/")])
def test_the_number_of_the_seed_is_a_folder_in_paths(conf, replicate, folder):
    (conf / "base/catalog.yml").write_text("z: {type: text.TextDataset, filepath: 'data/${globals:seed_folder}z.txt'}")
    assert loader(conf, "far", replicate=replicate)["catalog"]["z"]["filepath"] == f"data/{folder}z.txt"


@pytest.mark.parametrize("given", [0, -1, 10**9, 1.5, True, "two", None, {"of": 2}])
def test_a_number_of_a_seed_that_is_none_is_refused_before_anything_is_read(conf, given):
    with pytest.raises(InputError, match=r"`replicate` is .*: seeds are numbered from 1, give it .*=replicate=2"):
        loader(conf, "far", replicate=given)


def test_a_number_of_a_seed_in_a_file_is_refused(conf):
    (conf / "far/parameters.yml").write_text("replicate: 2")
    with pytest.raises(InputError, match=r"`replicate: 2` stands in a file of parameters: give it to the run"):
        _ = loader(conf, "far")["parameters"]


def test_the_policy_of_a_run_is_taken_out_of_its_parameters(conf):
    policy = Policy(forced=True)
    loaded = LayeredConfigLoader(conf, "far", with_policy({"stage": {"epochs": 4}}, policy), **CONFIG_LOADER_ARGS)
    assert loaded.policy is policy
    assert loaded.runtime_params == {"stage": {"epochs": 4}}
    assert loaded["parameters"]["stage"]["epochs"] == 4
    assert loader(conf, "far").policy == Policy()


def test_nobody_else_gives_a_policy(conf):
    with pytest.raises(InputError, match="unknown parameter `_policy`"):
        loader(conf, "far", _policy="lenient")
