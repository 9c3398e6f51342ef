import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.sources.idx import read_idx, read_idx_collection

IMAGES = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(3, 4, 5)
LABELS = np.array([0, 1, 1], dtype=np.uint8)


def idx_bytes(array: NDArray[np.uint8]) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["images", "images.gz"])
def test_what_is_written_is_read_gzipped_or_plain(tmp_path: Path, name: str) -> None:
    np.testing.assert_array_equal(read_idx(write(tmp_path / name, idx_bytes(IMAGES)), 3), IMAGES)


@pytest.mark.parametrize(("there", "asked"), [("images", "images.gz"), ("images.gz", "images")])
def test_a_file_unpacked_or_packed_since_is_found(tmp_path: Path, there: str, asked: str) -> None:
    write(tmp_path / there, idx_bytes(IMAGES))
    np.testing.assert_array_equal(read_idx(tmp_path / asked, 3), IMAGES)


def test_an_unpacked_file_that_kept_its_gz_name_is_read(tmp_path: Path) -> None:
    (tmp_path / "images.gz").write_bytes(idx_bytes(IMAGES))
    np.testing.assert_array_equal(read_idx(tmp_path / "images.gz", 3), IMAGES)


def test_a_missing_file_is_named_with_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_idx(tmp_path / "images.gz", 3)
    message = str(caught.value)
    assert f"{tmp_path / 'images.gz'} is missing" in message
    assert f"python -m deephash_pipeline.images download mnist {tmp_path}" in message
    assert "https://" in message and "\n" not in message


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (idx_bytes(IMAGES)[:-1], "truncated: its header announces 76 bytes, it has 75"),
        (idx_bytes(IMAGES)[:9], "truncated within its header"),
        (idx_bytes(IMAGES) + b"!", "too long"),
        (idx_bytes(LABELS), r"contains labels .* swapped"),
        (b"\x00\x00\x0d\x03" + idx_bytes(IMAGES)[4:], "does not start like an IDX file"),
        (b"<html>not found</html>", "does not start like an IDX file"),
        (b"", "does not start like an IDX file"),
        (struct.pack(">4B3I", 0, 0, 8, 3, *[2**32 - 1] * 3), "truncated"),
    ],
)
def test_a_bad_image_file_is_named_with_its_fault(tmp_path: Path, content: bytes, fault: str) -> None:
    path = write(tmp_path / "images", content)
    with pytest.raises(InputError, match=fault) as caught:
        read_idx(path, 3)
    assert str(path) in str(caught.value)


def test_images_where_labels_are_expected_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"contains images .* swapped"):
        read_idx(write(tmp_path / "labels", idx_bytes(IMAGES)), 1)


@pytest.mark.parametrize("damage", [lambda packed: packed[:-12], lambda packed: packed[:12] + b"\xff" * 20])
def test_a_damaged_gzip_file_is_named(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "images.gz"
    path.write_bytes(damage(gzip.compress(idx_bytes(IMAGES))))
    with pytest.raises(InputError, match=r"images\.gz is truncated or damaged"):
        read_idx(path, 3)


def test_a_collection_pairs_images_with_labels(tmp_path: Path) -> None:
    pair = (write(tmp_path / "images", idx_bytes(IMAGES)), write(tmp_path / "labels", idx_bytes(LABELS)))
    collection = read_idx_collection({"training": pair}, ["zero", "one"])
    training = collection.splits["training"]
    assert training.images.shape == (3, 1, 4, 5) and training.labels.tolist() == [0, 1, 1]
    assert training.ids == ["training/00000", "training/00001", "training/00002"]


def test_images_and_labels_that_differ_in_number_are_both_named(tmp_path: Path) -> None:
    pair = (write(tmp_path / "images", idx_bytes(IMAGES)), write(tmp_path / "labels", idx_bytes(LABELS[:2])))
    with pytest.raises(InputError, match=r"images has 3 images but .*labels 2 labels"):
        read_idx_collection({"training": pair}, ["zero", "one"])


def test_a_label_that_no_image_has_is_named(tmp_path: Path) -> None:
    images, labels = write(tmp_path / "images", idx_bytes(IMAGES)), write(tmp_path / "labels", idx_bytes(2 * LABELS))
    with pytest.raises(InputError, match="class 'dog' has no image in the split 'training'"):
        read_idx_collection({"training": (images, labels)}, ["cat", "dog", "emu"])
