import numpy as np
import pytest

from deephash_pipeline.photographs.duplicates import candidates
from deephash_pipeline.photographs.duplicates.frequencies import frequencies_in, likeness_vectors, low_frequencies


@pytest.mark.parametrize("kept", [0, 50, 2**20])
def test_a_picture_is_compared_with_the_ten_most_alike_in_any_orientation_however_many_are(kept, monkeypatch):
    monkeypatch.setattr(candidates, "PAIRS_KEPT", kept)
    rng = np.random.default_rng(0)
    # Forty are one picture, turned and with noise, and twenty are others.
    scene = rng.random((48, 64))
    greys = [
        np.rot90(scene, row % 4) + rng.normal(0, 0.02 + 0.001 * row, np.rot90(scene, row % 4).shape)
        for row in range(40)
    ]
    greys = [(200 * grey).clip(0, 255).astype(np.uint8) for grey in [*greys, *rng.random((20, 48, 64))]]
    asked, among = np.arange(50), np.arange(10, 60)
    low = low_frequencies(greys)
    turned = np.stack([likeness_vectors(frequencies_in(low, orientation)) for orientation in range(8)])
    expected = []
    for one in asked:
        likeness = (turned[:, among] @ turned[0, one]).ravel()
        others = np.tile(among, 8)
        near = np.flatnonzero((likeness >= candidates.LEAST_LIKENESS) & (others != one))
        best = near[np.argsort(-likeness[near], kind="stable")][: candidates.MOST_BY_FREQUENCIES]
        expected += [(int(one), int(others[place])) for place in best]
    found = list(candidates._near_by_frequencies(greys, asked, among))
    assert sorted(found) == sorted(expected)
    assert len(found) == 400
