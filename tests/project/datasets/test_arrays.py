import numpy as np
import pytest

from deephash_pipeline.project.datasets import CodesDataset, NumpyDataset
from deephash_pipeline.retrieval import CodeSets, pack_bits

ARRAYS = [
    np.arange(2 * 1 * 3 * 4, dtype=np.uint8).reshape(2, 1, 3, 4),
    np.array([[0.5, -0.0, np.nan]], dtype=np.float32),
    np.array([3, 1, 2], dtype=np.int64),
    np.empty((0, 1, 28, 28), dtype=np.uint8),
    np.empty((0, 500), dtype=np.float32),
]


def codes(generator, count, code_length):
    return pack_bits(generator.random((count, code_length)) < 0.5)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
@pytest.mark.parametrize("mmap_mode", [None, "r"])
def test_an_array_comes_back_as_it_was(tmp_path, array, mmap_mode):
    dataset = NumpyDataset(str(tmp_path / "array.npy"), mmap_mode=mmap_mode)
    dataset.save(array)
    loaded = dataset.load()
    assert loaded.dtype == array.dtype
    np.testing.assert_array_equal(loaded, array)


def test_a_mapped_array_is_read_in_parts_and_cannot_be_changed(tmp_path):
    NumpyDataset(str(tmp_path / "array.npy")).save(np.arange(10))
    mapped = NumpyDataset(str(tmp_path / "array.npy"), mmap_mode="r").load()
    assert isinstance(mapped, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        mapped[0] = 1


@pytest.fixture
def working_file(tmp_path):
    np.save(tmp_path / "working.npy", np.arange(24, dtype=np.uint8).reshape(4, 6))
    return tmp_path / "working.npy"


def test_a_map_of_a_whole_file_is_saved_as_another_name_of_it(tmp_path, working_file):
    mapped = np.load(working_file, mmap_mode="r")
    dataset = NumpyDataset(str(tmp_path / "array.npy"), mmap_mode="r")
    for _ in range(2):
        dataset.save(mapped)
        assert (tmp_path / "array.npy").samefile(working_file)
    working_file.unlink()
    np.testing.assert_array_equal(dataset.load(), np.arange(24).reshape(4, 6))
    assert [path.name for path in tmp_path.iterdir()] == ["array.npy"]


def test_where_there_are_no_links_a_mapped_file_is_copied(tmp_path, working_file, monkeypatch):
    def refuse(_source, _target):
        raise OSError("Invalid cross-device link")

    monkeypatch.setattr("os.link", refuse)
    NumpyDataset(str(tmp_path / "array.npy")).save(np.load(working_file, mmap_mode="r"))
    assert not (tmp_path / "array.npy").samefile(working_file)
    assert (tmp_path / "array.npy").read_bytes() == working_file.read_bytes()


@pytest.mark.parametrize(
    "part",
    [
        lambda mapped: mapped[:2],
        lambda mapped: mapped[::-1],
        lambda mapped: mapped.T,
        lambda mapped: mapped.reshape(6, 4),
        lambda mapped: mapped.view(np.int8),
        lambda mapped: mapped + np.uint8(1),
    ],
    ids=["slice", "reversed", "transposed", "reshaped", "other type", "computed"],
)
def test_what_is_made_of_a_map_is_saved_as_it_is(tmp_path, working_file, part):
    array = part(np.load(working_file, mmap_mode="r"))
    dataset = NumpyDataset(str(tmp_path / "array.npy"))
    dataset.save(array)
    loaded = dataset.load()
    assert loaded.dtype == array.dtype
    np.testing.assert_array_equal(loaded, array)


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_a_map_that_can_be_written_to_is_copied(tmp_path, working_file, mode):
    mapped = np.load(working_file, mmap_mode=mode)
    mapped[0, 0] = 99
    NumpyDataset(str(tmp_path / "array.npy")).save(mapped)
    mapped[0, 0] = 1
    assert np.load(tmp_path / "array.npy")[0, 0] == 99


def test_a_map_of_a_file_of_another_kind_is_copied(tmp_path):
    (tmp_path / "raw.bin").write_bytes(bytes(range(24)))
    NumpyDataset(str(tmp_path / "array.npy")).save(np.memmap(tmp_path / "raw.bin", dtype=np.uint8, mode="r"))
    assert np.load(tmp_path / "array.npy").tolist() == list(range(24))


def test_codes_come_back_as_they_were(tmp_path):
    generator = np.random.default_rng(0)
    saved = CodeSets(codes(generator, 20, 12), codes(generator, 0, 12), codes(generator, 5, 12), code_length=12)
    dataset = CodesDataset(str(tmp_path / "codes.npz"))
    dataset.save(saved)
    loaded = dataset.load()
    assert loaded.code_length == 12
    for name in ("database", "validation", "query"):
        assert getattr(loaded, name).dtype == np.uint8
        np.testing.assert_array_equal(getattr(loaded, name), getattr(saved, name))


def test_equal_codes_give_equal_files(tmp_path):
    for name in ("first.npz", "second.npz"):
        generator = np.random.default_rng(0)
        saved = CodeSets(codes(generator, 9, 24), codes(generator, 2, 24), codes(generator, 3, 24), code_length=24)
        CodesDataset(str(tmp_path / name)).save(saved)
    assert (tmp_path / "first.npz").read_bytes() == (tmp_path / "second.npz").read_bytes()
