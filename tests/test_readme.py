"""The README's examples do what it says, in an empty folder, and it stays short."""

import ast
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from deephash_pipeline.cli.main import cli

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
COMMANDS = [
    shlex.split(line, comments=True)[1:] for line in README.splitlines() if line.startswith("deephash-pipeline ")
]


def test_the_readme_has_at_most_900_words() -> None:
    assert len(README.split()) <= 900


def test_a_folder_is_indexed_and_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(PYTHON[0], "README.md", "exec"), {})
    build, search, serve = COMMANDS
    assert serve[0] == "serve"
    built = CliRunner().invoke(cli, build)
    assert built.exit_code == 0, built.output
    found = CliRunner().invoke(cli, search)
    assert found.exit_code == 0, found.output
    assert re.findall(r"photos/(\d)/\d{4}\.png", found.output) == ["3"] * 5


def test_embeddings_are_hashed_and_searched(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    exec(compile(PYTHON[1], "README.md", "exec"), names)
    answers = ast.literal_eval(capsys.readouterr().out)
    assert len(answers) == 5 and answers[0] == (0, 0)
