"""Which build of PyTorch `make` installs, by a stand-in for uv that writes down how it is called."""

import shutil
import subprocess

import pytest

from tests.packages import ROOT

UV = """#!/bin/sh
echo "$@" >> calls
case "$*" in *--torch-backend*) exit "$CPU_BUILD_FAILS";; *" venv "*|venv*) mkdir -p .venv;; esac
"""


@pytest.mark.parametrize(
    ("nvidia", "fails", "asked", "lines"), [("yes", 0, False, 0), ("", 0, True, 0), ("", 1, True, 1)]
)
def test_without_a_driver_the_build_for_cpus_is_installed_or_in_one_line_the_usual_one(
    tmp_path, nvidia, fails, asked, lines
):
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    uv = tmp_path / "uv"
    uv.write_text(UV)
    uv.chmod(0o755)
    command = ["make", "--silent", ".venv/installed", f"UV={uv}", f"NVIDIA={nvidia}"]
    environment = {"PATH": "/usr/bin:/bin", "CPU_BUILD_FAILS": str(fails)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [("--torch-backend cpu torch==" in call) for call in calls] == [False, *[True] * asked, False]
    assert ".[pipeline]" in calls[-1] and (tmp_path / ".venv" / "installed").exists()
    assert done.stdout.count("\n") == lines
