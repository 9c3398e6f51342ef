"""Configuration that is no YAML, or says what cannot be: one line with the file, exit code 1, nothing written."""

from pathlib import Path

import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.project.datasets import CheckpointsDataset
from deephash_pipeline.settings import CONFIG_LOADER_ARGS, CONFIG_LOADER_CLASS
from tests.bad_input.conftest import refusal

GLOBALS = "digits/globals.yml"
PARAMETERS = "digits/parameters.yml"
CATALOG = "base/catalog_01_raw.yml"
ATTACK = b"\nx: !!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path [attacked]]\n"

APPENDED = [
    ("a tab", b"\nx:\n\ty: 1\n", "line"),
    ("a duplicate key", b"\nbenchmark: mnist\n", "duplicate key benchmark"),
    ("NUL", b"\n# \0\n", "special characters"),
    ("Latin-1", "\n# é\n".encode("latin-1"), "UTF-8"),
    ("a Python tag", ATTACK, "python/object/apply"),
    ("a list as a name", b"\n[1, 2]: 3\n", ""),
]


NO_MAPPINGS = [
    ("a list", b"- a\n- b\n", "no names"),
    ("UTF-16", "x: 1\n".encode("utf-16"), "UTF-8"),
    ("a number", b"3\n", "conf/"),
]


@pytest.fixture
def few_files(tmp_path, monkeypatch):
    """A folder with little configuration, as the working directory."""
    for name in ("conf/base/parameters.yml", "conf/digits/globals.yml"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("benchmark: digits\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def parameters():
    return CONFIG_LOADER_CLASS("conf", "digits", **CONFIG_LOADER_ARGS)["parameters"]


@pytest.mark.usefixtures("few_files")
def test_good_configuration_has_no_fault():
    assert parameters() == {"benchmark": "digits"}


@pytest.mark.parametrize(("text", "named"), [case[1:] for case in APPENDED], ids=[case[0] for case in APPENDED])
@pytest.mark.parametrize("name", ["base/parameters.yml", "digits/globals.yml"])
def test_yaml_that_cannot_be_read_is_named_with_its_fault(few_files, name, text, named):
    path = few_files / "conf" / name
    path.write_bytes(path.read_bytes() + text)
    with pytest.raises(InputError, match=f"conf/{name} cannot be used") as refused:
        parameters()
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not Path("attacked").exists()


@pytest.mark.parametrize(("text", "named"), [case[1:] for case in NO_MAPPINGS], ids=[case[0] for case in NO_MAPPINGS])
def test_what_is_no_mapping_is_named(few_files, text, named):
    (few_files / "conf/digits/globals.yml").write_bytes(text)
    with pytest.raises(InputError, match=r"conf/digits/globals\.yml cannot be used") as refused:
        parameters()
    assert named in str(refused.value)


def replaced(old, new):
    return lambda content: content.replace(old, new)


IN_A_RUN = [
    ("a tab", GLOBALS, lambda content: content + APPENDED[0][1], f"conf/{GLOBALS}"),
    ("an unknown global", PARAMETERS, lambda _: b"experiment: {effort: '${globals:foo}'}", "foo"),
    ("a dataset of an unknown type", CATALOG, lambda _: b"raw_images: {type: foo.Bar}", "raw_images"),
    ("a source of an unknown kind", GLOBALS, replaced(b"kind: digits", b"kind: letters"), "letters"),
    ("an empty benchmark", GLOBALS, lambda content: content + b"\nbenchmark: ''\n", "benchmark"),
    ("a benchmark outside", GLOBALS, lambda content: content + b"\nbenchmark: ../../../evil\n", "benchmark"),
]


@pytest.fixture
def kept(here):
    """The configuration of the digits; what a test changes in it is put back."""
    folder = here / "conf"
    contents = {path: path.read_bytes() for path in folder.rglob("*.yml")}
    yield folder
    for path in folder.rglob("*.yml"):
        if path not in contents:
            path.unlink()
    for path, content in contents.items():
        path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "change", "named"), [case[1:] for case in IN_A_RUN], ids=[case[0] for case in IN_A_RUN]
)
def test_a_run_names_what_is_wrong_with_its_configuration(kept, here, name, change, named):
    path = kept / name
    path.write_bytes(change(path.read_bytes() if path.exists() else b""))
    assert named in refusal(here, "--pipelines=data_ingestion")


def test_configuration_elsewhere_is_looked_at_where_it_is(here, tmp_path):
    for name, text in (("base", "seed: 1\n"), ("mine", "x: [\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "globals.yml").write_text(text)
    assert f"{tmp_path}/mine/globals.yml" in refusal(here, f"--conf-source={tmp_path}", "--env=mine")


def test_broken_configuration_of_logging_is_named(kept, here, monkeypatch):
    (kept / "logging.yml").write_text("version: [\n")
    monkeypatch.delenv("KEDRO_LOGGING_CONFIG", raising=False)
    monkeypatch.chdir(kept)
    assert "conf/logging.yml" in refusal(here)


@pytest.mark.parametrize("seconds", ["abc", -1, float("nan"), float("inf"), [], None, True, "30"])
def test_seconds_between_checkpoints_are_a_number(seconds):
    with pytest.raises(InputError, match="seconds_between_checkpoints"):
        CheckpointsDataset("checkpoints", seconds)
