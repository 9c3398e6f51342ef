import numpy as np
import pytest

from deephash_pipeline.photographs.duplicates import candidates


@pytest.mark.parametrize("kept", [0, 50, 2**20])
def test_a_picture_is_compared_with_the_ten_nearest_by_its_hash_however_many_are_near(kept, monkeypatch):
    monkeypatch.setattr(candidates, "PAIRS_KEPT", kept)
    generator = np.random.default_rng(0)
    hashes = np.zeros((60, 8, 8), dtype=np.uint8)
    hashes[..., 0] = 2 ** generator.integers(0, 8, (60, 8))
    hashes[40:] = generator.integers(0, 256, (20, 8, 8), dtype=np.uint8)
    asked, among = np.arange(50), np.arange(10, 60)
    bits = np.unpackbits(hashes, axis=2).astype(np.int64)
    expected = []
    for one in asked:
        distances = np.abs(bits[one, 0] - bits[among]).sum(axis=2).T.ravel()
        others = np.tile(among, 8)
        near = np.flatnonzero((distances <= candidates.HASH_RADIUS) & (others != one))
        best = near[np.argsort(distances[near], kind="stable")][: candidates.MOST_BY_HASH]
        expected += [(distances[place], one, others[place]) for place in best]
    found = list(candidates._near_by_hash(hashes, asked, among))
    assert sorted(found) == sorted([int(one), int(other)] for _, one, other in expected)
    assert len(found) == 400
