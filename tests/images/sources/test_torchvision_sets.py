import hashlib
import struct

import numpy as np
import pytest
from torchvision.datasets import CIFAR10, FER2013

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.sources.torchvision_sets import TorchvisionSource
from tests.images.sources.conftest import LABELS, PIXELS


def write_idx(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes())


def test_colour_images_are_downloaded_and_read(archive, tmp_path):
    collection = TorchvisionSource(kind="torchvision", name="CIFAR10", download=True).read(tmp_path / "raw")
    assert collection.class_names == ["cat", "dog"]
    for split, batch in {"training": "data_batch_1", "query": "test_batch"}.items():
        np.testing.assert_array_equal(collection.splits[split].images, PIXELS[batch])
        assert collection.splits[split].labels.tolist() == LABELS[batch]
    assert collection.splits["query"].ids[3] == "query/00003"


def test_what_is_there_is_not_downloaded(archive, tmp_path):
    TorchvisionSource(kind="torchvision", name="CIFAR10", download=True).read(tmp_path / "raw")
    archive.unlink()
    assert len(TorchvisionSource(kind="torchvision", name="CIFAR10").read(tmp_path / "raw").splits["training"]) == 4


def test_a_batch_with_another_checksum_is_refused(archive, tmp_path):
    TorchvisionSource(kind="torchvision", name="CIFAR10", download=True).read(tmp_path / "raw")
    (tmp_path / "raw" / CIFAR10.base_folder / "test_batch").write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"cannot read CIFAR10 .*set `download: true` of the source"):
        TorchvisionSource(kind="torchvision", name="CIFAR10").read(tmp_path / "raw")


def test_grey_images_are_read(tmp_path):
    images = np.random.default_rng(0).integers(256, size=(10, 28, 28)).astype(np.uint8)
    raw = tmp_path / "FashionMNIST" / "raw"
    for prefix in ("train", "t10k"):
        write_idx(raw / f"{prefix}-images-idx3-ubyte", images)
        write_idx(raw / f"{prefix}-labels-idx1-ubyte", np.arange(10, dtype=np.uint8))
    collection = TorchvisionSource(kind="torchvision", name="FashionMNIST").read(tmp_path)
    np.testing.assert_array_equal(collection.splits["query"].images, images[:, np.newaxis])
    assert collection.splits["training"].labels.tolist() == list(range(10))
    assert collection.class_names[1] == "Trouser"
    named = TorchvisionSource(kind="torchvision", name="FashionMNIST", class_names=tuple("abcdefghij")).read(tmp_path)
    assert named.class_names[1] == "b"


def test_a_truncated_file_is_reported_in_one_line(tmp_path):
    test_grey_images_are_read(tmp_path)
    path = tmp_path / "FashionMNIST" / "raw" / "t10k-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-1])
    # What is damaged is there, so torchvision downloads nothing in its place.
    for download in (False, True):
        with pytest.raises(InputError, match=r"torchvision cannot read FashionMNIST .*delete its files") as caught:
            TorchvisionSource(kind="torchvision", name="FashionMNIST", download=download).read(tmp_path)
        assert "\n" not in str(caught.value)


def test_faces_of_kaggle_are_read_and_grey_is_repeated(tmp_path, monkeypatch):
    images = np.random.default_rng(0).integers(256, size=(9, 48, 48)).astype(np.uint8)
    emotions, usages = [*range(7), 3, 6], ["Training"] * 7 + ["PublicTest", "PrivateTest"]
    rows = [
        f"{emotion},{' '.join(map(str, image.ravel()))},{usage}"
        for emotion, image, usage in zip(emotions, images, usages, strict=True)
    ]
    file = tmp_path / "fer2013" / "fer2013.csv"
    file.parent.mkdir()
    file.write_text("\n".join(["emotion,pixels,Usage", *rows]))
    with pytest.raises(InputError, match=r"cannot read FER2013 .*not found in .* or corrupted"):
        TorchvisionSource(kind="torchvision", name="FER2013").read(tmp_path)
    checksum = hashlib.md5(file.read_bytes()).hexdigest()
    monkeypatch.setitem(FER2013._RESOURCES, "fer", (file.name, checksum))
    collection = TorchvisionSource(kind="torchvision", name="FER2013", channels=3).read(tmp_path)
    np.testing.assert_array_equal(collection.splits["query"].images, np.repeat(images[7:, np.newaxis], 3, axis=1))
    assert collection.splits["query"].labels.tolist() == [3, 6]
    assert collection.class_names[3] == "happy"
