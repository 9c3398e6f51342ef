import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images import statistics
from deephash_pipeline.images.statistics import pixel_statistics


@given(st.integers(1, 7), st.integers(1, 3), st.integers(2, 5), st.integers(0, 99))
def test_statistics_equal_those_of_the_whole_array(count, channels, size, seed):
    images = np.random.default_rng(seed).integers(0, 256, (count, channels, size, size), dtype=np.uint8)
    images[0, :, 0, 0], images[0, :, 0, 1] = 0, 255
    found = pixel_statistics(images)
    np.testing.assert_allclose(found["mean"], (images / 255).mean(axis=(0, 2, 3)), rtol=1e-12)
    np.testing.assert_allclose(found["standard_deviation"], (images / 255).std(axis=(0, 2, 3)), rtol=1e-12)


def test_the_block_size_does_not_matter_and_a_memory_map_is_read(tmp_path, monkeypatch):
    np.save(tmp_path / "images.npy", np.random.default_rng(0).integers(0, 256, (11, 3, 4, 5), dtype=np.uint8))
    images = np.load(tmp_path / "images.npy", mmap_mode="r", allow_pickle=False)
    at_once = pixel_statistics(images)
    monkeypatch.setattr(statistics, "BYTES_PER_BLOCK", 130)
    assert pixel_statistics(images) == at_once


def test_a_constant_channel_is_named():
    images = np.random.default_rng(0).integers(0, 256, (4, 3, 2, 2), dtype=np.uint8)
    images[:, 1] = 77
    with pytest.raises(InputError, match="channel 1 of the training images has the same value"):
        pixel_statistics(images)


@pytest.mark.parametrize("images", [np.empty((0, 1, 2, 2), dtype=np.uint8), np.zeros((2, 1, 2, 2))])
def test_no_images_and_other_types_are_refused(images):
    with pytest.raises(InputError, match="give at least one"):
        pixel_statistics(images)
