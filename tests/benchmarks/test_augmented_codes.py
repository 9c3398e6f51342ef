from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.augmented_codes import FinishedRun, augmented_codes
from deephash_pipeline.hashing import load_encoder
from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.networks import build_trunk, initialise
from deephash_pipeline.retrieval import CodeSets, distinct_codes


@pytest.fixture
def run() -> FinishedRun:
    generator = np.random.default_rng(3)
    images = generator.integers(0, 256, (40, 1, 28, 28), dtype=np.uint8)
    cells = ("deephash.b48", "itq.b48")
    trunks, encoders = {}, {}
    for seed, cell in enumerate(cells):
        trunk = build_trunk("lenet")
        initialise(trunk, seed)
        trunks[cell] = trunk.state_dict()
        arrays = {"projection": generator.normal(size=(500, 16)).astype(np.float32), "threshold": np.zeros(16)}
        encoders[cell] = load_encoder("hash_layer", 16, arrays)
    none = np.empty((0, 2), dtype=np.uint8)
    return FinishedRun(
        images=images,
        pixel_statistics={"mean": [0.5], "standard_deviation": [0.3]},
        network="lenet",
        seed=1,
        augmentation=AugmentationParameters(rotation_degrees=20),
        trunks=trunks,
        encoders=encoders,
        codes={cell: CodeSets(none, none, none, 16) for cell in cells},
    )


def test_every_version_of_an_image_is_moved_in_its_own_way_and_again_alike(run: FinishedRun) -> None:
    codes = augmented_codes(run, 3)
    assert {cell: of_cell.shape for cell, of_cell in codes.items()} == dict.fromkeys(run.trunks, (3 * 40, 2))
    again = augmented_codes(run, 3)
    for cell, of_cell in codes.items():
        np.testing.assert_array_equal(of_cell, again[cell])
        versions = of_cell.reshape(3, 40, 2)
        assert not np.array_equal(versions[0], versions[1])
        assert not np.array_equal(versions[1], versions[2])
    assert not np.array_equal(*codes.values())


def test_images_that_are_not_moved_have_the_same_code_in_every_version(run: FinishedRun) -> None:
    still = augmented_codes(replace(run, augmentation=AugmentationParameters()), 2)
    for of_cell in still.values():
        np.testing.assert_array_equal(of_cell[:40], of_cell[40:])
        assert distinct_codes(of_cell) > 1


def test_kept_codes_are_used_only_while_models_and_moves_are_the_same(run: FinishedRun, tmp_path: Path) -> None:
    cache = tmp_path / "new" / "codes.npz"
    made = augmented_codes(run, 2, cache)
    with np.load(cache) as arrays:
        kept = dict(arrays)
    marked = np.full_like(kept["itq.b48"], 77)
    np.savez(cache, **{**kept, "itq.b48": marked})
    np.testing.assert_array_equal(augmented_codes(run, 2, cache)["itq.b48"], marked)

    moved_less = replace(run, augmentation=AugmentationParameters(rotation_degrees=1))
    other_network = replace(run, trunks={cell: run.trunks["itq.b48"] for cell in run.trunks})
    for changed, versions in ((run, 1), (moved_less, 2), (other_network, 2)):
        np.savez(cache, **{**kept, "itq.b48": marked})
        assert not np.array_equal(augmented_codes(changed, versions, cache)["itq.b48"], marked[: 40 * versions])
    np.testing.assert_array_equal(augmented_codes(run, 2, cache)["itq.b48"], made["itq.b48"])
    assert [file.name for file in cache.parent.iterdir()] == ["codes.npz"]
