"""The command that a message names installs what is lacking, wherever this package came from."""

import sys
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement

from deephash_pipeline.common import extras
from tests.packages import INSTALLS, PROJECT, ROOT

OPTIONAL = PROJECT["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", OPTIONAL)
def test_in_a_clone_its_own_extra_is_installed(extra):
    assert extras.installing_extra(extra).endswith(INSTALLS.format(extra).replace("\\", ""))
    assert (ROOT / "pyproject.toml").is_file()


@pytest.mark.parametrize("extra", OPTIONAL)
def test_elsewhere_the_packages_are_named_that_the_extra_has(monkeypatch, tmp_path, extra):
    monkeypatch.setattr(extras, "PACKAGE", tmp_path / "a" / "b" / "c")
    command = extras.installing_extra(extra)
    assert "deephash-pipeline" not in command
    asked = [Requirement(text) for text in requires("deephash-pipeline")]
    own = {each.name for each in asked if each.marker and each.marker.evaluate({"extra": extra})}
    assert own - {"deephash-pipeline"} and all(name in command for name in own - {"deephash-pipeline"})


def test_where_there_is_no_pip_uv_installs_into_this_environment(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    assert extras.installing("scipy>=1").startswith(f"VIRTUAL_ENV={sys.prefix} ")
    assert extras.installing("scipy>=1").endswith("uv pip install 'scipy>=1'")
