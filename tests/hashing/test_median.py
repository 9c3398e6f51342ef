import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deephash_pipeline.hashing.median import Median


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=30))
def test_no_other_threshold_halves_the_training_set_more_evenly(values):
    column = np.array(values, dtype=np.float32)[:, np.newaxis]
    bits = Median(1).fit(column).transform(column)
    shares = [(column >= threshold).mean() for threshold in np.arange(-4, 5)]
    assert abs(bits.mean() - 0.5) <= min(abs(share - 0.5) for share in shares) + 1e-9


def test_features_after_a_relu_make_different_codes():
    z = np.random.default_rng(0).normal(-1, 1, (400, 16)).clip(0)
    assert len(np.unique(Median(16).fit(z).transform(z), axis=0)) > 200
