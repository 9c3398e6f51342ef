import numpy as np
import pytest

from benchmarks.codes import MISLABELLED_SHARE, synthetic_codes
from deephash_pipeline.retrieval import check_codes, distinct_codes, unpack_bits


@pytest.mark.parametrize("codes", ["random", "trained"])
def test_equal_seeds_give_equal_codes(codes):
    first, again, other = (synthetic_codes(codes, 10, 12, 20, 300, seed) for seed in (0, 0, 1))
    assert np.array_equal(first.database_codes, again.database_codes)
    assert np.array_equal(first.query_labels, again.query_labels)
    assert not np.array_equal(first.database_codes, other.database_codes)
    assert check_codes(first.query_codes, 12).shape == (20, 2)
    assert set(np.unique(first.database_labels)) == set(range(10))


def test_trained_codes_gather_at_prototypes_except_the_mislabelled():
    drawn = synthetic_codes("trained", 2, 64, 1, 4000)
    bits = unpack_bits(drawn.database_codes, 64)
    prototypes = [np.median(bits[drawn.database_labels == label], axis=0) for label in (0, 1)]
    distances = np.array([np.count_nonzero(bits != prototype, axis=1) for prototype in prototypes])
    elsewhere = np.argmin(distances, axis=0) != drawn.database_labels
    # Half of the mislabelled are drawn into their own class again.
    assert np.mean(elsewhere) == pytest.approx(MISLABELLED_SHARE / 2, abs=0.03)
    nearest = distances.min(axis=0)
    assert np.median(nearest) <= 3 and nearest.max() > 15
    assert distinct_codes(drawn.database_codes) < 3500
