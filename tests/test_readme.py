"""What the README shows first is what happens."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_first_lines_learn_store_encode_and_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    block = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert block is not None
    monkeypatch.chdir(tmp_path)
    exec(compile(block[1].replace("effort=0.3", "effort=0.1"), "README.md", "exec"), {})
    assert (tmp_path / "digits48.safetensors").is_file()
    share = re.fullmatch(r"(\d+)% of 100 new digits have their own class nearest\n", capsys.readouterr().out)
    assert share is not None
    assert int(share[1]) >= 80
