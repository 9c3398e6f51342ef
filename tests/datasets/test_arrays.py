from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from kedro.io import DatasetError
from numpy.typing import NDArray

from deephash_pipeline.datasets import CodesDataset, HistogramsDataset, NumpyDataset
from deephash_pipeline.retrieval import CodeSets, DistanceHistograms, count_distances, pack_bits

ARRAYS = [
    np.arange(2 * 1 * 3 * 4, dtype=np.uint8).reshape(2, 1, 3, 4),
    np.array([[0.5, -0.0, np.nan]], dtype=np.float32),
    np.array([3, 1, 2], dtype=np.int64),
    np.empty((0, 1, 28, 28), dtype=np.uint8),
    np.empty((0, 500), dtype=np.float32),
]


def codes(generator: np.random.Generator, count: int, code_length: int) -> NDArray[np.uint8]:
    return pack_bits(generator.random((count, code_length)) < 0.5)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
@pytest.mark.parametrize("mmap_mode", [None, "r"])
def test_an_array_comes_back_as_it_was(tmp_path: Path, array: NDArray[Any], mmap_mode: Literal["r"] | None) -> None:
    dataset = NumpyDataset(str(tmp_path / "array.npy"), mmap_mode=mmap_mode)
    dataset.save(array)
    loaded = dataset.load()
    assert loaded.dtype == array.dtype
    np.testing.assert_array_equal(loaded, array)


def test_a_mapped_array_is_read_in_parts_and_cannot_be_changed(tmp_path: Path) -> None:
    NumpyDataset(str(tmp_path / "array.npy")).save(np.arange(10))
    mapped = NumpyDataset(str(tmp_path / "array.npy"), mmap_mode="r").load()
    assert isinstance(mapped, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        mapped[0] = 1


@pytest.mark.parametrize("mmap_mode", [None, "r"])
def test_an_array_of_objects_is_refused(tmp_path: Path, mmap_mode: Literal["r"] | None) -> None:
    path = tmp_path / "array.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DatasetError, match=r"allow_pickle=False|Array can't be memory-mapped"):
        NumpyDataset(str(path), mmap_mode=mmap_mode).load()


def test_codes_come_back_as_they_were(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    saved = CodeSets(codes(generator, 20, 12), codes(generator, 0, 12), codes(generator, 5, 12), code_length=12)
    dataset = CodesDataset(str(tmp_path / "codes.npz"))
    dataset.save(saved)
    loaded = dataset.load()
    assert loaded.code_length == 12
    for name in ("database", "validation", "query"):
        assert getattr(loaded, name).dtype == np.uint8
        np.testing.assert_array_equal(getattr(loaded, name), getattr(saved, name))


def test_equal_codes_give_equal_files(tmp_path: Path) -> None:
    for name in ("first.npz", "second.npz"):
        generator = np.random.default_rng(0)
        saved = CodeSets(codes(generator, 9, 24), codes(generator, 2, 24), codes(generator, 3, 24), code_length=24)
        CodesDataset(str(tmp_path / name)).save(saved)
    assert (tmp_path / "first.npz").read_bytes() == (tmp_path / "second.npz").read_bytes()


def test_histograms_come_back_as_they_were(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(3, size=50)
    saved = count_distances(codes(generator, 6, 16), labels[:6], codes(generator, 50, 16), labels, 16)
    dataset = HistogramsDataset(str(tmp_path / "histograms.npz"))
    dataset.save(saved)
    loaded = dataset.load()
    assert isinstance(loaded, DistanceHistograms)
    np.testing.assert_array_equal(loaded.all, saved.all)
    np.testing.assert_array_equal(loaded.relevant, saved.relevant)
