from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images import batches
from deephash_pipeline.images.decoding.image_files import ImageFiles
from deephash_pipeline.images.decoding.ingestion import BrokenImage, decode_splits
from deephash_pipeline.images.sources.collection import ImageSet
from deephash_pipeline.project.datasets import NumpyDataset

CLASSES = ["cat", "dog"]


@pytest.fixture
def root(tmp_path):
    (tmp_path / "raw").mkdir()
    return tmp_path / "raw"


def listed(root, split, count):
    """Files of both classes in turn, each of another grey, the splits of their own greys."""
    names = [f"{split}{row}.png" for row in range(count)]
    for row, name in enumerate(names):
        Image.new("L", (4, 4), {"training": 0, "validation": 100, "query": 200}[split] + row).save(root / name)
    return ImageSet(ImageFiles(root, names, 4, 1), np.arange(count) % 2, names)


@pytest.fixture
def splits(root):
    counts = {"training": 10, "validation": 0, "query": 6}
    return {split: listed(root, split, count) for split, count in counts.items()}


def test_every_split_becomes_an_array_with_its_labels_and_ids(tmp_path, splits):
    decoded, broken = decode_splits(splits, CLASSES, 0, tmp_path / "decoded")
    assert broken == []
    assert {name: len(split) for name, split in decoded.items()} == {"training": 10, "validation": 0, "query": 6}
    assert decoded["query"].images[:, 0, 0, 0].tolist() == [200, 201, 202, 203, 204, 205]
    assert decoded["query"].labels.tolist() == [0, 1] * 3
    assert decoded["query"].ids == splits["query"].ids


def test_broken_images_are_left_out_with_their_labels_and_ids_and_listed(tmp_path, root, splits):
    for name in ("training3.png", "query0.png"):
        (root / name).write_bytes(b"no image")
    decoded, broken = decode_splits(splits, CLASSES, 2 / 16, tmp_path / "decoded")
    assert [entry[:2] for entry in broken] == [("training", "training3.png"), ("query", "query0.png")]
    assert isinstance(broken[0], BrokenImage) and "cannot identify image file" in broken[0].reason
    rows = [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert decoded["training"].ids == [f"training{row}.png" for row in rows]
    assert decoded["training"].labels.tolist() == [row % 2 for row in rows]
    assert decoded["training"].images[:, 0, 0, 0].tolist() == rows
    assert decoded["query"].ids[0] == "query1.png"


def test_more_broken_images_than_allowed_stop_the_run_and_what_is_decoded_is_kept(tmp_path, root, splits):
    for name in ("training3.png", "training4.png"):
        (root / name).write_bytes(b"no image")
    with pytest.raises(InputError) as caught:
        decode_splits(splits, CLASSES, 1 / 16, tmp_path / "decoded")
    message = str(caught.value)
    limit = "more than 6.25% of 16 image files are broken, the first is"
    assert message.startswith(f"{limit} {root}/training3.png (cannot")
    assert "raise data_ingestion.broken_share_limit" in message and "\n" not in message
    assert (root.parent / "decoded" / "training.npy").is_file()
    assert len(decode_splits(splits, CLASSES, 2 / 16, tmp_path / "decoded")[1]) == 2


def test_a_class_whose_training_images_are_all_broken_is_named(tmp_path, root, splits):
    for row in range(1, 10, 2):
        (root / f"training{row}.png").write_bytes(b"")
    with pytest.raises(InputError, match="all training images of the class 'dog' are broken"):
        decode_splits(splits, CLASSES, 1, tmp_path / "decoded")


def test_queries_that_are_all_broken_are_reported(tmp_path, root, splits):
    for row in range(6):
        (root / f"query{row}.png").write_bytes(b"")
    with pytest.raises(InputError, match="all images of the split 'query' are broken"):
        decode_splits(splits, CLASSES, 1, tmp_path / "decoded")


@pytest.mark.parametrize("as_arrays", [False, True])
def test_images_in_two_splits_are_counted_in_one_line(tmp_path, root, splits, as_arrays, caplog):
    for row in (1, 2):
        Image.new("L", (9, 9), 5).save(root / f"query{row}.png")
    if as_arrays:
        splits, _ = decode_splits(splits, CLASSES, 0, tmp_path / "decoded")
        caplog.clear()
    decode_splits(splits, CLASSES, 0, tmp_path / "decoded")
    assert [record.getMessage() for record in caplog.records] == [
        "images with the same pixels as one of another split: 2, the first are training5.png (training) and query1.png "
        "(query); splits must not share images, remove one of each two"
    ]


def test_images_twice_in_one_split_are_no_fault(tmp_path, root, splits, caplog):
    Image.new("L", (9, 9), 201).save(root / "query2.png")
    decode_splits(splits, CLASSES, 0, tmp_path / "decoded")
    assert caplog.records == []


def test_what_is_decoded_serves_every_later_run(splits, tmp_path, monkeypatch):
    finished = NumpyDataset(str(tmp_path / "images.npy"), mmap_mode="r")
    finished.save(decode_splits(splits, CLASSES, 0, tmp_path / "decoded")[0]["training"].images)
    monkeypatch.setattr(batches, "decode_limited", Mock(side_effect=AssertionError("decoded again")))
    again = decode_splits(splits, CLASSES, 0, tmp_path / "decoded")[0]["training"].images
    finished.save(again)
    np.testing.assert_array_equal(finished.load(), np.array(again))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["decoded", "images.npy", "raw"]
