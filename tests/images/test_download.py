import hashlib
from pathlib import Path

import pytest
from torchvision.datasets import MNIST  # type: ignore[import-untyped]

from deephash_pipeline.images.__main__ import main

FILES = {"train-images-idx3-ubyte.gz": b"images", "train-labels-idx1-ubyte.gz": b"labels"}


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mirror"
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    monkeypatch.setattr(
        MNIST, "resources", [(name, hashlib.md5(content).hexdigest()) for name, content in FILES.items()]
    )
    monkeypatch.setattr(MNIST, "mirrors", [f"{folder.as_uri()}/"])
    return folder


def held(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_all_files_are_fetched_with_a_line_each(
    mirror: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["download", "mnist", str(tmp_path / "raw" / "mnist")]) == 0
    assert held(tmp_path / "raw" / "mnist") == FILES
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(FILES)
    assert lines[0] == f"{tmp_path}/raw/mnist/train-images-idx3-ubyte.gz: 6 bytes from {mirror.as_uri()}/"


def test_a_file_already_there_is_not_fetched_again(
    mirror: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["download", "mnist", str(tmp_path / "raw")]) == 0
    for name in FILES:
        (mirror / name).unlink()
    assert main(["download", "mnist", str(tmp_path / "raw")]) == 0
    assert capsys.readouterr().out.count("already there") == len(FILES)


def test_the_next_mirror_is_asked_when_the_first_fails(
    mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MNIST, "mirrors", [f"{(tmp_path / 'gone').as_uri()}/", *MNIST.mirrors])
    assert main(["download", "mnist", str(tmp_path / "raw")]) == 0
    assert held(tmp_path / "raw") == FILES


@pytest.mark.parametrize("fault", ["unreachable", "corrupted"])
def test_a_failure_is_one_line_and_leaves_nothing_half_written(
    mirror: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    second = mirror / "train-labels-idx1-ubyte.gz"
    if fault == "unreachable":
        second.unlink()
    else:
        second.write_bytes(b"lab")
    assert main(["download", "mnist", str(tmp_path / "raw")]) == 1
    told = capsys.readouterr().err
    assert told.startswith("train-labels-idx1-ubyte.gz could not be downloaded") and told.count("\n") == 1
    assert "wrong checksum" in told if fault == "corrupted" else "No such file" in told
    assert list(held(tmp_path / "raw")) == ["train-images-idx3-ubyte.gz"]


def test_a_folder_that_cannot_be_made_is_told_in_one_line(
    mirror: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "raw").write_text("a file")
    assert main(["download", "mnist", str(tmp_path / "raw")]) == 1
    assert str(tmp_path / "raw") in capsys.readouterr().err
