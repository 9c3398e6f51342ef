import numpy as np
import pytest

from deephash_pipeline.hamming.features import FeatureForm
from deephash_pipeline.hamming.kernels import int8_features
from deephash_pipeline.hamming.kernels.int8_features import squared_distances_of_int8

UNTOUCHED = -1.0


@pytest.mark.parametrize("width", [1, 31, 32, 33, 64, 384, 1000, 4096, 9000])
def test_distances_are_those_of_the_rows_as_they_are_stored(width):
    rng = np.random.default_rng(width)
    form = FeatureForm(width, "int8")
    stored = form.stored(rng.normal(size=(40, width)).astype(np.float32) * rng.uniform(0.01, 100, (40, 1)))
    queries = np.vstack([rng.normal(size=(2, width)) * 7, form.real(stored[3:4]), np.zeros((1, width))])
    z = queries.astype(np.float32)
    rows = np.array([rng.permutation(np.arange(5, 50)) for _ in z])
    scores = np.full(rows.shape, UNTOUCHED, dtype=np.float32)
    squared_distances_of_int8(0, len(z), z, rows, 10, stored, scores)
    real = form.real(stored).astype(np.float64)
    exact = ((z[:, np.newaxis].astype(np.float64) - real[np.maximum(rows - 10, 0)]) ** 2).sum(axis=2)
    longest = ((z.astype(np.float64) ** 2).sum(axis=1).max() + (real**2).sum(axis=1).max()).max()
    inside = rows >= 10
    np.testing.assert_allclose(scores[inside], exact[inside], rtol=1e-6, atol=1e-8 * longest)
    # Rows of other parts are theirs.
    assert (scores[~inside] == UNTOUCHED).all()


def test_sums_of_the_largest_numbers_fit():
    width = 3 * int8_features.PRODUCTS_AT_A_TIME + 7
    row = np.full((1, width), 127, dtype=np.int8)
    stored = np.hstack([row, np.ones((1, 1), dtype="<f4").view(np.int8)])
    z, scores = np.full((1, width), -127, dtype=np.float32), np.empty((1, 1), dtype=np.float32)
    squared_distances_of_int8(0, 1, z, np.zeros((1, 1), dtype=np.int64), 0, stored, scores)
    assert scores[0, 0] == pytest.approx(width * 254**2, rel=1e-6)
