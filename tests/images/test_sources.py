from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from deephash_pipeline.errors import InputError
from deephash_pipeline.images.sources import DigitsSource, FolderSource, IdxSource, parse_source, read_source


@pytest.mark.parametrize(
    ("parameters", "model"),
    [
        ({"kind": "digits"}, DigitsSource),
        ({"kind": "idx"}, IdxSource),
        ({"kind": "folder", "image_size": 32, "channels": 3}, FolderSource),
    ],
)
def test_the_kind_chooses_the_model(parameters: dict[str, Any], model: type) -> None:
    assert isinstance(parse_source(parameters), model)


@pytest.mark.parametrize(
    ("parameters", "fault"),
    [
        ({}, "kind"),
        ({"kind": "lmdb"}, "'lmdb'"),
        ({"kind": "digits", "image_sise": 28}, "digits.image_sise: Extra inputs"),
        ({"kind": "digits", "image_size": 0}, "digits.image_size: "),
        ({"kind": "folder", "image_size": 32, "channels": 2}, "folder.channels: "),
        ({"kind": "folder", "channels": 1}, "folder.image_size: Field required"),
        ({"kind": "folder", "image_size": 8, "channels": 1, "splits": {"training": "train"}}, "training and query"),
        ({"kind": "folder", "image_size": 8, "channels": 1, "splits": {"all": ".", "query": "test"}}, "all alone"),
    ],
)
def test_wrong_parameters_are_named_in_one_line(parameters: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_source(parameters)
    assert fault in str(caught.value) and "\n" not in str(caught.value)


def test_all_wrong_parameters_are_told_at_once() -> None:
    with pytest.raises(InputError, match=r"folder\.image_size: .*; folder\.channels: "):
        parse_source({"kind": "folder", "image_size": 0, "channels": 2})


def test_digits_are_read_without_raw_files(tmp_path: Path) -> None:
    held = read_source(DigitsSource(kind="digits", image_size=8), tmp_path / "nowhere")
    assert held.splits["all"].images.shape == (1797, 1, 8, 8)


def test_a_missing_idx_file_is_told_with_its_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"train-images-idx3-ubyte\.gz is missing"):
        read_source(IdxSource(kind="idx"), tmp_path)


def test_a_folder_is_read_below_the_raw_folder(tmp_path: Path) -> None:
    for split in ("train", "test"):
        (tmp_path / split / "cat").mkdir(parents=True)
        Image.new("L", (4, 4), 3).save(tmp_path / split / "cat" / "a.png")
    held = read_source(FolderSource(kind="folder", image_size=4, channels=1), tmp_path)
    assert {name: split.ids for name, split in held.splits.items()} == {
        "training": ["train/cat/a.png"],
        "query": ["test/cat/a.png"],
    }
