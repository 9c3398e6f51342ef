import numpy as np
from sklearn.random_projection import GaussianRandomProjection

from deephash_pipeline.hashing import LSH


def test_bits_are_the_signs_of_scikit_learns_random_projections(z):
    # The same draws: scikit-learn's come from the legacy generator, so ours stand in for them.
    projection = GaussianRandomProjection(n_components=12, random_state=0).fit(z)
    projection.components_ = np.random.default_rng(3).standard_normal((12, z.shape[1])) / np.sqrt(12)
    expected = projection.transform(z.astype(np.float64)) >= 0
    np.testing.assert_array_equal(LSH(12, random_state=3).fit(z).transform(z), expected)


def test_centring_equals_hashing_the_centred_features(z):
    exact = z.astype(np.float64)
    centred, plain = (LSH(48, random_state=3, centre=centre).fit(exact) for centre in (True, False))
    np.testing.assert_array_equal(centred.transform(exact), plain.transform(exact - exact.mean(axis=0)))


def test_a_short_code_is_the_beginning_of_a_long_one(z):
    short, long = (LSH(code_length, random_state=2).fit(z).transform(z) for code_length in (12, 48))
    np.testing.assert_array_equal(short, long[:, :12])
