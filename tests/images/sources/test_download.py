import functools
import hashlib
import http.server
import pickle
import tarfile
import threading
from pathlib import Path

import numpy as np
import pytest
from torchvision.datasets import CIFAR10

from deephash_pipeline.images.__main__ import main
from deephash_pipeline.images.decoding.ingestion import decode_splits
from deephash_pipeline.images.sources.folder import FolderSource
from tests.images.sources.test_torchvision_sets import QuietHandler


@pytest.fixture
def cifar10(tmp_path, monkeypatch):
    """A CIFAR-10 of two classes in the format of the original, which torchvision reads; return pixels and labels."""
    generator = np.random.default_rng(0)
    content = {
        name: (generator.integers(0, 256, (len(labels), 3, 32, 32), dtype=np.uint8), labels)
        for name, labels in {"data_batch_1": [1, 0, 1], "test_batch": [0, 1]}.items()
    }
    batches = tmp_path / CIFAR10.base_folder
    batches.mkdir()
    for name, (pixels, labels) in content.items():
        batch = {"data": pixels.reshape(len(labels), -1), "labels": labels}
        batch["filenames"] = [f"{['mule', 'ship', 'mule'][row]}_s_{row:06d}.png" for row in range(len(labels))]
        (batches / name).write_bytes(pickle.dumps(batch))
    (batches / "batches.meta").write_bytes(pickle.dumps({"label_names": ["airplane", "automobile"]}))
    archive = tmp_path / CIFAR10.filename
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(batches, CIFAR10.base_folder)

    def checksum(path):
        return hashlib.md5(path.read_bytes()).hexdigest()

    handler = functools.partial(QuietHandler, directory=archive.parent)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(CIFAR10, "url", f"http://127.0.0.1:{server.server_port}/{archive.name}")
    monkeypatch.setattr(CIFAR10, "tgz_md5", checksum(archive))
    monkeypatch.setattr(CIFAR10, "train_list", [["data_batch_1", checksum(batches / "data_batch_1")]])
    monkeypatch.setattr(CIFAR10, "test_list", [["test_batch", checksum(batches / "test_batch")]])
    monkeypatch.setattr(CIFAR10, "meta", {**CIFAR10.meta, "md5": checksum(batches / "batches.meta")})
    yield content
    server.shutdown()
    server.server_close()


def test_cifar10_is_unpacked_into_the_folders_that_the_folder_source_reads(cifar10, tmp_path, capsys):
    raw = tmp_path / "raw" / "cifar10"
    assert main(["download", "cifar10", str(raw)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == [
        f"{raw}/train: 3 images",
        f"{raw}/test: 2 images",
    ]
    assert sorted(path.name for path in raw.iterdir()) == ["test", "train"]

    source = FolderSource(kind="folder", image_size=32, channels=3)
    collection = source.read(raw)
    assert collection.class_names == ["airplane", "automobile"]
    decoded, _ = decode_splits(collection.splits, collection.class_names, 0, tmp_path / "decoded")
    for split, batch in {"training": "data_batch_1", "query": "test_batch"}.items():
        images = decoded[split]
        pixels, labels = cifar10[batch]
        positions = [int(Path(name).stem.rpartition("_")[2]) for name in images.ids]
        assert np.array_equal(images.images, pixels[positions])
        assert images.labels.tolist() == [labels[position] for position in positions]
        assert sorted(positions) == list(range(len(labels)))
    assert decoded["training"].ids[0] == "train/airplane/ship_s_000001.png"


def test_only_the_folder_of_cifar10_that_is_missing_is_made(cifar10, tmp_path, capsys):
    (tmp_path / "raw" / "train").mkdir(parents=True)
    assert main(["download", "cifar10", str(tmp_path / "raw")]) == 0
    assert "raw/train: already there" in capsys.readouterr().out
    assert not any((tmp_path / "raw" / "train").iterdir())
    assert len(list((tmp_path / "raw" / "test").rglob("*.png"))) == 2
    (tmp_path / CIFAR10.filename).unlink()
    assert main(["download", "cifar10", str(tmp_path / "raw")]) == 0
    assert capsys.readouterr().out.count("already there") == 2


def test_a_folder_that_cannot_be_made_is_reported_in_one_line(tmp_path, capsys):
    (tmp_path / "raw").write_text("a file")
    assert main(["download", "cifar10", str(tmp_path / "raw")]) == 1
    assert str(tmp_path / "raw") in capsys.readouterr().err


@pytest.mark.parametrize("fault", ["unreachable", "corrupted"])
def test_without_the_right_archive_of_cifar10_there_is_one_line_and_no_image(cifar10, tmp_path, capsys, fault):
    archive = tmp_path / CIFAR10.filename
    if fault == "unreachable":
        archive.unlink()
    else:
        archive.write_bytes(archive.read_bytes()[:-1])
    assert main(["download", "cifar10", str(tmp_path / "raw")]) == 1
    message = capsys.readouterr().err
    assert message.splitlines()[-1].startswith("torchvision cannot read CIFAR10 from ")
    assert not any((tmp_path / "raw").iterdir())
