from pathlib import Path

import numpy as np
import pytest

from deephash_pipeline.images.__main__ import main
from deephash_pipeline.images.decoding.ingestion import decode_splits
from deephash_pipeline.images.sources.folder import FolderSource
from tests.images.sources.conftest import LABELS, PIXELS


def test_cifar10_is_unpacked_into_the_folders_that_the_folder_source_reads(archive, tmp_path, capsys):
    raw = tmp_path / "raw" / "cifar10"
    assert main(["download", "cifar10", str(raw)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == [f"{raw}/train: 4 images", f"{raw}/test: 4 images"]
    assert sorted(path.name for path in raw.iterdir()) == ["test", "train"]

    source = FolderSource(kind="folder", image_size=32, channels=3)
    collection = source.read(raw)
    assert collection.class_names == ["cat", "dog"]
    decoded, _ = decode_splits(collection.splits, collection.class_names, 0, tmp_path / "decoded")
    for split, batch in {"training": "data_batch_1", "query": "test_batch"}.items():
        images = decoded[split]
        positions = [int(Path(name).stem.rpartition("_")[2]) for name in images.ids]
        assert np.array_equal(images.images, PIXELS[batch][positions])
        assert images.labels.tolist() == [LABELS[batch][position] for position in positions]
        assert sorted(positions) == [0, 1, 2, 3]
    assert decoded["training"].ids[0] == "train/cat/ship_s_000001.png"


def test_only_the_folder_of_cifar10_that_is_missing_is_made(archive, tmp_path, capsys):
    (tmp_path / "raw" / "train").mkdir(parents=True)
    assert main(["download", "cifar10", str(tmp_path / "raw")]) == 0
    assert "raw/train: already there" in capsys.readouterr().out
    assert not any((tmp_path / "raw" / "train").iterdir())
    assert len(list((tmp_path / "raw" / "test").rglob("*.png"))) == 4
    archive.unlink()
    assert main(["download", "cifar10", str(tmp_path / "raw")]) == 0
    assert capsys.readouterr().out.count("already there") == 2


def test_a_folder_that_cannot_be_made_is_reported_in_one_line(tmp_path, capsys):
    (tmp_path / "raw").write_text("a file")
    assert main(["download", "cifar10", str(tmp_path / "raw")]) == 1
    assert str(tmp_path / "raw") in capsys.readouterr().err


@pytest.mark.parametrize("fault", ["unreachable", "corrupted"])
def test_without_the_right_archive_of_cifar10_there_is_one_line_and_no_image(archive, tmp_path, capsys, fault):
    if fault == "unreachable":
        archive.unlink()
    else:
        archive.write_bytes(archive.read_bytes()[:-1])
    assert main(["download", "cifar10", str(tmp_path / "raw")]) == 1
    message = capsys.readouterr().err
    assert message.splitlines()[-1].startswith("torchvision cannot read CIFAR10 from ")
    assert not any((tmp_path / "raw").iterdir())
